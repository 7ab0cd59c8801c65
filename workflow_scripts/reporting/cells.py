"""The cells of all tables: one kind of row, whoever computes it (``columns.tables.TABLE``)."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from types import MappingProxyType
from typing import Any, NamedTuple

from workflow_scripts.data.printed import Printed
from workflow_scripts.evaluation.significance import summarise

Row = dict[str, Any]


class Values(NamedTuple):
    """One cell before it is summarised: a value per seed, or per draw, or notes on why there is none."""

    by_seed: Mapping[int, float]
    n: int
    notes: tuple[str, ...]
    by_task: Mapping[str, float] = MappingProxyType({})
    """The parts of a mean over tasks."""


def cell(
    run: str,
    heading: str,
    values: Values,
    shows: Mapping[str, Any],
    labels: Iterable[str] = (),
    printed: Printed | None = None,
) -> Row:
    """The row of one cell.

    Args:
        run: The table's row.
        heading: The table's column.
        values: What it holds.
        shows: Suite, task, aggregation, metric, scale and digits.
        labels: Substitutions that affect it.
        printed: The paper's number.
    """
    found = summarise(list(values.by_seed.values())) if values.by_seed else None
    return {
        "run": run,
        "heading": heading,
        **shows,
        "mean": found and found.mean,
        "sd": found and found.sd,
        "seeds": len(values.by_seed),
        "n": values.n,
        "repeats": list(values.by_seed),
        "values": list(values.by_seed.values()),
        "of_tasks": list(values.by_task.values()),
        "published": printed and printed.value,
        "published_source": printed and printed.source,
        "note": "; ".join(values.notes) or None,
        "labels": sorted(labels),
    }


def paired(sides: Sequence[Mapping[int, float]], fixed: Sequence[bool]) -> dict[int, tuple[float, float]]:
    """Values of two sides, seed by seed; a fixed side has one value, which stands against every seed of the other."""
    ours, theirs = sides
    if fixed[1]:
        return {seed: (value, fmean(theirs.values())) for seed, value in ours.items()}
    if fixed[0]:
        return {seed: (fmean(ours.values()), value) for seed, value in theirs.items()}
    return {seed: (ours[seed], theirs[seed]) for seed in ours if seed in theirs}
