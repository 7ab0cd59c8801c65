"""One experiment's table: each run's score in each column, over seeds, against the baseline and the paper.

Every number is a mean over seeds, never the best of them. The difference to the baseline is tested over
the seeds that both have. An untrained run has one seed, since nothing in it is random, so its score
stands against every seed of a trained one, which makes the test a one-sample t-test.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv

from workflow_scripts.dag import runs_of
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.evaluation.significance import Config as Significance
from workflow_scripts.evaluation.significance import compare, summarise
from workflow_scripts.reporting.experiment import Column, Experiment, MeanColumn
from workflow_scripts.schemas import TABLE

Row = dict[str, Any]

PUBLISHED = {"run": pa.string(), "heading": pa.string(), "value": pa.float64(), "source": pa.string()}
"""Columns that a table reads of ``resources/published/*.csv``."""


class ScoreFile(NamedTuple):
    """Scores of one run and seed on one suite (``schemas.SCORES``), and the substitutions that reach them."""

    scores: pa.Table
    labels: Sequence[str]


class Published(NamedTuple):
    """A number as a paper prints it."""

    value: float
    source: str


class Values(NamedTuple):
    """One cell before its summary: a value per seed, or the reasons why there is none."""

    by_seed: dict[int, float]
    n: int
    notes: tuple[str, ...]


def build(
    experiment: Experiment,
    files: Iterable[ScoreFile],
    published: Mapping[tuple[str, str], Published],
    significance: Significance,
    place: str,
) -> pa.Table:
    """Lay out one experiment's table.

    Args:
        experiment: The grid.
        files: Every score file of the grid's runs.
        published: Run and heading to the number in the paper.
        significance: How differences are tested.
        place: Where the grid stands, for errors.

    Returns:
        A row per run and column in the grid's order, columns of ``schemas.TABLE``.

    Raises:
        ConfigError: if the baseline is no run of the grid, or no run has a column's task or metric.
        DataError: if a run lacks the scores of a suite, or seeds of one cell come from different data.
    """
    runs = runs_of(experiment.model_dump())
    if experiment.baseline is not None and experiment.baseline not in runs:
        raise ConfigError(
            f"{place}.baseline: {experiment.baseline} is no run of the grid; has {', '.join(runs)}."
        )
    scores, labels = _indexed(files)
    columns = {column.heading: column for column in experiment.columns}
    cells = {
        (run, heading): _values(scores, run, column, place)
        for heading, column in columns.items()
        if isinstance(column, Column)
        for run in runs
    }
    for heading, column in columns.items():
        if isinstance(column, MeanColumn):
            cells |= {
                (run, heading): _mean_of([cells[run, part] for part in column.mean_of], column)
                for run in runs
            }
    untrained = {name for name, run in runs.items() if run.corpus is None}
    return pa.Table.from_pylist(
        [
            {"run": run, "heading": heading, "labels": sorted(labels[run]), **_described(columns, heading)}
            | _summary(cells[run, heading])
            | _against(experiment.baseline, run, heading, cells, untrained, significance)
            | _as_published(published.get((run, heading)))
            for run in runs
            for heading in columns
        ],
        schema=TABLE,
    )


def read_published(contents: Mapping[str, bytes], experiment: Experiment) -> dict[tuple[str, str], Published]:
    """Read what papers print for the cells of one grid; rows that name no run are left alone.

    Args:
        contents: Name of each file to its bytes: CSV with at least the columns of ``PUBLISHED``.
        experiment: The grid.

    Raises:
        DataError: if a column is missing, or a row's run and heading are not in the grid, or stand twice.
    """
    known = {
        (run, column.heading) for run in runs_of(experiment.model_dump()) for column in experiment.columns
    }
    numbers: dict[tuple[str, str], Published] = {}
    for place, content in contents.items():
        for row in _rows(content, place):
            cell = row["run"], row["heading"]
            where = f"{place}: run {cell[0]}, heading {cell[1]}"
            if cell not in known:
                raise DataError(f"{where}: not in the grid. Correct the row or the grid.")
            if cell in numbers:
                raise DataError(f"{where}: stands twice. Remove one row.")
            numbers[cell] = Published(row["value"], row["source"])
    return numbers


def _rows(content: bytes, place: str) -> list[Row]:
    """Rows of one file that name a run."""
    options = pa.csv.ConvertOptions(column_types=PUBLISHED, include_columns=list(PUBLISHED))
    try:
        rows = pa.csv.read_csv(pa.BufferReader(content), convert_options=options).to_pylist()
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        raise DataError(f"{place}: {error}. Give the columns {', '.join(PUBLISHED)}.") from error
    return [row for row in rows if row["run"]]


class _Scores(NamedTuple):
    """Rows of all score files, by what cells ask for."""

    of_task: dict[tuple[str, str, str], list[Row]]  # run, suite, task
    tasks: dict[str, set[str]]  # of a suite
    metrics: dict[tuple[str, str], set[str]]  # of a suite and task; empty where all are gaps


def _indexed(files: Iterable[ScoreFile]) -> tuple[_Scores, dict[str, set[str]]]:
    scores = _Scores(defaultdict(list), defaultdict(set), defaultdict(set))
    labels: dict[str, set[str]] = defaultdict(set)
    for file in files:
        for row in file.scores.to_pylist():
            suite, task = row["suite"], row["task"]
            scores.of_task[row["run"], suite, task].append(row)
            scores.tasks[suite].add(task)
            scores.metrics[suite, task] |= {row["metric"]} - {""}
            labels[row["run"]].update(file.labels)
    return scores, labels


def _values(scores: _Scores, run: str, column: Column, place: str) -> Values:
    """Values of one run in one column, times its scale."""
    suite, task = column.suite, column.task
    where = f"{place}.columns, {column.heading}"
    if task not in scores.tasks[suite]:
        known = ", ".join(sorted(scores.tasks[suite])) or "no tasks"
        raise ConfigError(f"{where}: suite {suite} has no scores of {task}; has {known}.")
    if scores.metrics[suite, task] and column.metric not in scores.metrics[suite, task]:
        known = ", ".join(sorted(scores.metrics[suite, task]))
        raise ConfigError(f"{where}: task {task} has no metric {column.metric}; has {known}.")
    rows = scores.of_task[run, suite, task]
    if not rows:
        raise DataError(f"{where}: no scores of run {run} on {suite}. Rerun its evaluation.")
    asked = (column.aggregation, column.metric)
    exact = [row for row in rows if (row["aggregation"], row["metric"]) == asked]
    found = [row for row in exact if row["value"] is not None]
    gaps = [row["note"] for row in rows if row["value"] is None]
    if not exact and not gaps:
        known = ", ".join(sorted({row["aggregation"] for row in rows if row["metric"] == column.metric}))
        gaps = [f"{task} has no aggregation {column.aggregation}; has {known}"]
    if len(sizes := {row["n"] for row in found}) > 1:
        raise DataError(
            f"{where}: seeds of {run} were scored on different data, n {sorted(sizes)}. Rerun them."
        )
    if len({row["seed"] for row in found}) < len(found):
        raise DataError(f"{where}: run {run} has two values for one seed. Remove one of its score files.")
    notes = [*gaps, *(row["note"] for row in found if row["note"])]
    return Values(
        by_seed={
            row["seed"]: row["value"] * column.scale for row in sorted(found, key=lambda row: row["seed"])
        },
        n=min(sizes, default=0),
        notes=tuple(dict.fromkeys(notes)),
    )


def _mean_of(parts: Sequence[Values], column: MeanColumn) -> Values:
    """Mean over columns, for the seeds that all of them have; one gap makes it a gap."""
    shared = set.intersection(*(set(part.by_seed) for part in parts))
    lacking = [heading for heading, part in zip(column.mean_of, parts, strict=True) if not part.by_seed]
    return Values(
        by_seed={seed: fmean(part.by_seed[seed] for part in parts) for seed in sorted(shared)},
        n=sum(part.n for part in parts) if shared else 0,
        notes=(f"needs {', '.join(lacking)}",)
        if lacking
        else ()
        if shared
        else ("no seed has all of its columns",),
    )


def _described(columns: Mapping[str, Column | MeanColumn], heading: str) -> Row:
    """What a column shows; a mean names its parts and has no aggregation of its own."""
    column = columns[heading]
    if isinstance(column, Column):
        return column.model_dump(include={"suite", "task", "aggregation", "metric"})
    parts = [part for part in columns.values() if isinstance(part, Column) and part.heading in column.mean_of]
    shared = {
        key: " and ".join(dict.fromkeys(getattr(part, key) for part in parts))
        for key in ("suite", "aggregation", "metric")
    }
    return shared | {"task": f"mean of {', '.join(column.mean_of)}"}


def _summary(values: Values) -> Row:
    shown: Row = {"n": values.n, "note": "; ".join(values.notes) or None}
    if not values.by_seed:
        return shown | {"mean": None, "sd": None, "seeds": 0}
    summary = summarise(list(values.by_seed.values()))
    return shown | {"mean": summary.mean, "sd": summary.sd, "seeds": summary.n}


def _against(
    baseline: str | None,
    run: str,
    heading: str,
    cells: Mapping[tuple[str, str], Values],
    untrained: set[str],
    significance: Significance,
) -> Row:
    if baseline is None or run == baseline:
        return {}
    ours, theirs = cells[run, heading].by_seed, cells[baseline, heading].by_seed
    if not ours or not theirs:
        return {}
    pairs = _paired(ours, theirs, run in untrained, baseline in untrained)
    if not pairs:
        return {"difference": fmean(ours.values()) - fmean(theirs.values())}
    result = compare([one for one, _ in pairs], [other for _, other in pairs], significance)
    return {"difference": result.difference, "p_value": result.t_p, "detectable": result.detectable}


def _paired(
    ours: Mapping[int, float], theirs: Mapping[int, float], ours_untrained: bool, theirs_untrained: bool
) -> list[tuple[float, float]]:
    """Values to compare; an untrained run has the same value at whatever seed the other has."""
    if ours_untrained and theirs_untrained:
        return [(fmean(ours.values()), fmean(theirs.values()))]
    if theirs_untrained:
        return [(value, fmean(theirs.values())) for value in ours.values()]
    if ours_untrained:
        return [(fmean(ours.values()), value) for value in theirs.values()]
    return [(ours[seed], theirs[seed]) for seed in ours if seed in theirs]


def _as_published(number: Published | None) -> Row:
    return {"published": number.value, "published_source": number.source} if number else {}
