"""Cells of a table that are computed from other cells, seed by seed, or taken from a training's own metrics."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

import pyarrow.compute as pc

from workflow_scripts.reporting.cells import Values, paired
from workflow_scripts.reporting.records import RunTable
from workflow_scripts.settings.experiment import (
    AnyColumn,
    Column,
    GainColumn,
    MeanColumn,
    PathColumn,
    RatioColumn,
    read_by,
)

Cells = Mapping[tuple[str, str], Values]
"""Run and heading to the values."""


def computed(
    columns: Sequence[AnyColumn], cells: Cells, baselines: Mapping[str, str | None], fixed: Collection[str]
) -> Cells:
    """The cells of all columns of scores and paths, and those that are computed from them.

    Args:
        columns: Of the table.
        cells: Of its columns of scores and paths, for every run.
        baselines: Each run of the table to the run that it is compared with.
        fixed: Runs with one value, because nothing in them is random.
    """
    found = dict(cells)
    for kind in (MeanColumn, RatioColumn | GainColumn):  # the latter may read means
        for column in columns:
            if isinstance(column, kind):
                of_runs = {
                    (run, column.heading): _computed(column, run, found, baselines, fixed)
                    for run in baselines
                }
                found |= of_runs
    return found


def _computed(
    column: AnyColumn,
    run: str,
    cells: Cells,
    baselines: Mapping[str, str | None],
    fixed: Collection[str],
) -> Values:
    match column:
        case MeanColumn(mean_of=parts):
            return _mean({part: cells[run, part] for part in parts})
        case RatioColumn(ratio_of=[above, below]):
            return _ratio({part: cells[run, part] for part in (above, below)})
        case GainColumn(gain_of=part):
            baseline = baselines[run]
            if baseline is None:
                return Values({}, 0, ("nothing that it is compared with",))
            return _gain(cells[run, part], cells[baseline, part], run in fixed, baseline in fixed)
    raise AssertionError(f"{column.heading} is not computed from other columns")


def _mean(parts: Mapping[str, Values]) -> Values:
    """Mean over columns, for the seeds that all of them have; a gap in one of them is a gap."""
    seeds = _shared_seeds(parts)
    return Values(
        by_seed={seed: fmean(part.by_seed[seed] for part in parts.values()) for seed in seeds},
        n=sum(part.n for part in parts.values()) if seeds else 0,
        notes=_lacking(parts),
    )


def _ratio(parts: Mapping[str, Values]) -> Values:
    """First column over second, for the seeds that both have; nothing over 0."""
    above, below = parts.values()
    shared = _shared_seeds(parts)
    seeds = [seed for seed in shared if below.by_seed[seed]]
    return Values(
        by_seed={seed: above.by_seed[seed] / below.by_seed[seed] for seed in seeds},
        n=above.n if seeds else 0,
        notes=_lacking(parts) or (() if len(seeds) == len(shared) else (f"{list(parts)[1]} is 0",)),
    )


def _gain(ours: Values, theirs: Values, ours_fixed: bool, theirs_fixed: bool) -> Values:
    """Ours less theirs."""
    if not ours.by_seed or not theirs.by_seed:
        return Values({}, 0, tuple(dict.fromkeys((*ours.notes, *theirs.notes))))
    pairs = paired(ours.by_seed, theirs.by_seed, ours_fixed, theirs_fixed)
    gains = {seed: one - other for seed, (one, other) in pairs.items()}
    return Values(gains, ours.n if gains else 0, () if gains else ("no seed that the baseline has too",))


def _shared_seeds(parts: Mapping[str, Values]) -> list[int]:
    return sorted(set.intersection(*(set(part.by_seed) for part in parts.values())))


def _lacking(parts: Mapping[str, Values]) -> tuple[str, ...]:
    """Why a cell that needs all of ``parts`` has no value, or none for some seed; nothing if it has all."""
    lacking = [heading for heading, part in parts.items() if not part.by_seed]
    if lacking:
        return (f"needs {', '.join(lacking)}",)
    shared, every = _shared_seeds(parts), set.union(*(set(part.by_seed) for part in parts.values()))
    if not shared:
        return ("no seed has all of its columns",)
    fewer = [heading for heading, part in parts.items() if len(part.by_seed) < len(every)]
    return (f"over {len(shared)} of {len(every)} seeds, which {', '.join(fewer)} has",) if fewer else ()


def paths(columns: Sequence[AnyColumn], histories: Iterable[RunTable]) -> Cells:
    """Cells of the columns that show a training's own metric at one step; runs without it have none.

    Args:
        columns: Of the table.
        histories: The metrics of each trained run and seed, in the columns of ``columns.training.METRICS``.
    """
    shown = [column for column in columns if isinstance(column, PathColumn)]
    found: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for history in histories:
        for column in shown:
            at_step = pc.and_(
                pc.equal(history.table["metric"], column.path_of),
                pc.equal(history.table["step"], column.step),
            )
            for value in history.table.filter(at_step)["value"].to_pylist():
                found[history.run, column.heading][history.seed] = value
    return {cell: Values(dict(sorted(values.items())), 1, ()) for cell, values in found.items()}


def described(columns: Sequence[AnyColumn], column: AnyColumn) -> dict[str, Any]:
    """What a column shows, as ``columns.tables.TABLE`` has it: suite, task, aggregation, metric, scale, digits."""
    scale = column.scale if isinstance(column, Column) else None
    return _shown(columns, column) | {"scale": scale, "digits": column.digits}


def _shown(columns: Sequence[AnyColumn], column: AnyColumn) -> dict[str, str]:
    match column:
        case Column():
            return column.model_dump(include={"suite", "task", "aggregation", "metric"})
        case PathColumn(path_of=metric, step=step):
            return {"suite": "training", "task": f"step {step:,}", "aggregation": "", "metric": metric}
        case MeanColumn(mean_of=parts):
            task = f"mean of {', '.join(parts)}"
        case RatioColumn(ratio_of=[above, below]):
            task = f"{above} over {below}"
        case GainColumn(gain_of=part):
            task = f"{part} less that of the baseline"
    behind = [_shown(columns, part) for part in columns if part.heading in read_by(column)]
    shared = {
        key: " and ".join(dict.fromkeys(part[key] for part in behind))
        for key in ("suite", "aggregation", "metric")
    }
    return shared | {"task": task}
