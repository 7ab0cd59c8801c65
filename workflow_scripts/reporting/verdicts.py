"""The claims of papers against the scores of one study: a row per claim (``columns.claims.CLAIMS``).

Sides are compared over what both of them repeat: the seeds of trained runs, the draws of random vectors, or else the
tasks behind a mean of the extraction study, and the sentence pairs of two untrained runs. One value on each side can
be subtracted, but nothing can be said of the difference.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workflow_scripts.columns.claims import CLAIMS, NOT_RUN
from workflow_scripts.columns.scores import SIMILARITIES
from workflow_scripts.columns.tables import TABLE
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation.significance import observed, resampled
from workflow_scripts.evaluation.verdicts import (
    Evidence,
    Kind,
    corrected,
    over_pairs,
    over_resamples,
    verdict,
)
from workflow_scripts.graph.runs import runs_of
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.provenance.record import Record
from workflow_scripts.reporting.cells import Row, paired
from workflow_scripts.reporting.records import record_of, wildcard
from workflow_scripts.settings.claims import Comparison, Held, HeldClaim
from workflow_scripts.settings.experiment import AnyColumn, Column, Experiment, MeanColumn
from workflow_scripts.settings.significance import Config as Significance


class Found(NamedTuple):
    """Two compared cells and the evidence on them."""

    ours: Row
    theirs: Row
    compared: "Compared"


class Compared(NamedTuple):
    """What two cells were compared over."""

    over: str
    """seeds, draws, tasks or pairs; empty where nothing is repeated."""
    ours: float
    theirs: float
    """Means over what both sides have."""
    evidence: Evidence


class Table(NamedTuple):
    """A table, or the data of a figure that is drawn from one, by its cells."""

    record: Record
    cells: Mapping[tuple[str, str], Row]
    """Run and heading to what ``columns.tables.TABLE`` has of them."""


class Material(NamedTuple):
    """What a study has made that claims are compared by."""

    tables: Mapping[str, Table]
    pairs: Mapping[tuple[str, str], pa.Table]
    """Scored pairs, by run and suite."""


def of_job(job: Job) -> pa.Table:
    """Judge all claims that a job's study is held to.

    Raises:
        DataError: if an input is damaged, or two sides were scored on different pairs.
    """
    significance = Significance.parse(job.settings["significance"], "significance")
    claims = Held.parse(job.settings["held"], "claims").claims
    material = _material(job)
    return judged(claims, [compare(claim, material, significance) for claim in claims], significance)


def judged(claims: Sequence[HeldClaim], found: Sequence[Found | str], significance: Significance) -> pa.Table:
    """The table of claims with their verdicts.

    Args:
        claims: What the study is held to.
        found: What was found of each, or why it was not compared.
        significance: How differences are tested.
    """
    p_values = corrected([None if isinstance(one, str) else one.compared.evidence.p for one in found])
    rows = [
        _described(claim)
        | (_not_run(one) if isinstance(one, str) else _compared(claim, one, p, significance))
        for claim, one, p in zip(claims, found, p_values, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=CLAIMS)


def _described(claim: HeldClaim) -> Row:
    return {
        "paper": claim.paper,
        "claim": claim.name,
        "place": claim.where,
        "says": claim.says,
        "expects": claim.expects,
        "margin": claim.margin,
        "printed_ours": claim.printed.ours,
        "printed_theirs": claim.printed.theirs,
    }


def _not_run(why: str) -> Row:
    return {"verdict": NOT_RUN, "reason": why, "labels": []}


def _compared(claim: HeldClaim, found: Found, p: float | None, significance: Significance) -> Row:
    over, ours, theirs, evidence = found.compared
    comparison = claim.compared
    assert isinstance(comparison, Comparison)
    kind = verdict(evidence, p, claim.expects, claim.margin or 0, significance.alpha)
    return {
        "verdict": kind,
        "reason": reason(found, kind, comparison.differs, significance.alpha),
        "table": comparison.table,
        "run": comparison.ours.run,
        "heading": comparison.ours.heading,
        "baseline": comparison.theirs.run,
        "baseline_heading": comparison.theirs.heading,
        "ours": ours,
        "theirs": theirs,
        "difference": evidence.difference,
        "low": evidence.low,
        "high": evidence.high,
        "over": over,
        "n": evidence.n,
        "detectable": evidence.detectable,
        "p_value": evidence.p,
        "corrected_p": p,
        "labels": sorted({*found.ours["labels"], *found.theirs["labels"]}),
    }


def reason(found: Found, kind: Kind, differs: str | None, alpha: float) -> str:
    """What a verdict rests on, in one line."""
    over, _ours, _theirs, evidence = found.compared
    direction = "higher" if evidence.difference > 0 else "lower"
    parts = [f"{number(abs(evidence.difference))} {direction}" if evidence.difference else "equal"]
    if evidence.low is None or evidence.high is None:
        several = any((side["seeds"] or 1) > 1 for side in (found.ours, found.theirs))
        why = "no two seeds in common" if several else "one value on each side"
        parts.append(f"{why}, so that nothing is tested")
    else:
        interval = f"{number(evidence.low)} to {number(evidence.high)}"
        parts[0] += f" ({interval}) over {evidence.n:,} {over}"
        if kind == "undecided":
            parts.append(_why_undecided(evidence, alpha))
    return "; ".join([*parts, *filter(None, [differs])])


def _why_undecided(evidence: Evidence, alpha: float) -> str:
    if evidence.p is not None and evidence.p < alpha:
        return "shown alone, but not among so many claims"
    return f"even alone, a true difference below {number(evidence.detectable or 0)} would mostly go unseen"


def number(value: float) -> str:
    """A number with two decimals, or two digits where it is small."""
    return f"{value:.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:.2g}"


def _material(job: Job) -> Material:
    return Material(
        tables={path.stem: _table(path) for path in job.many("tables")},
        pairs={
            (wildcard(path, "run"), wildcard(path, "suite")): read_table(path, SIMILARITIES)
            for path in job.many("pairs")
        },
    )


def _table(path: Path) -> Table:
    rows = read_table(path, TABLE).to_pylist()
    return Table(record_of(path), {(row["run"], row["heading"]): row for row in rows})


def compare(claim: HeldClaim, material: Material, significance: Significance) -> Found | str:
    """The evidence on one claim, or why there is none."""
    comparison = claim.compared
    if isinstance(comparison, str):
        return comparison
    if comparison.table not in material.tables:
        return f"this study makes no table {comparison.table}"
    table = material.tables[comparison.table]
    sides = []
    for cell in (comparison.ours, comparison.theirs):
        row = table.cells.get((cell.run, cell.heading))
        if row is None:
            return f"{comparison.table} of this study has no cell {cell.run}, {cell.heading}"
        if row["mean"] is None:
            return f"{cell.run}, {cell.heading}: {row['note'] or 'no value'}"
        sides.append(row)
    if table.record.rule == "make_table":
        experiment = Experiment.parse(table.record.settings["experiment"], comparison.table)
        return Found(sides[0], sides[1], _in_grid(sides, experiment, claim, material, significance))
    return Found(sides[0], sides[1], _in_extraction(sides, claim, significance))


def _seeded(row: Row) -> dict[int, float]:
    """The value of each seed, or draw."""
    return dict(zip(row["repeats"], row["values"], strict=True))


def _in_extraction(sides: Sequence[Row], claim: HeldClaim, significance: Significance) -> Compared:
    """Over the draws of random vectors, else over the tasks of a mean."""
    ours, theirs = sides
    single = len(ours["values"]) == 1, len(theirs["values"]) == 1
    if not all(single):
        draws = paired(_seeded(ours), _seeded(theirs), *single)
        return _over("draws", list(draws.values()), claim, significance)
    if len(ours["of_tasks"]) > 1 and ours["task"] == theirs["task"]:
        tasks = list(zip(ours["of_tasks"], theirs["of_tasks"], strict=True))
        return _over("tasks", tasks, claim, significance)
    return _over("", [(ours["mean"], theirs["mean"])], claim, significance)


def _over(
    what: str, pairs: Sequence[tuple[float, float]], claim: HeldClaim, significance: Significance
) -> Compared:
    """Two sides over what both repeat, pair by pair."""
    differences = [one - other for one, other in pairs]
    evidence = over_pairs(differences, claim.expects, claim.margin or 0, significance)
    return Compared(what, fmean(one for one, _ in pairs), fmean(other for _, other in pairs), evidence)


def _in_grid(
    sides: Sequence[Row],
    experiment: Experiment,
    claim: HeldClaim,
    material: Material,
    significance: Significance,
) -> Compared:
    """Over seeds; over sentence pairs where neither run has any."""
    runs = runs_of(experiment.model_dump())
    ours, theirs = map(_seeded, sides)
    fixed = [runs[row["run"]].fixed for row in sides]
    if all(fixed):
        columns = [_behind(experiment.columns, row["heading"]) for row in sides]
        parts = [
            _resampled(one, other, [row["run"] for row in sides], material, significance)
            for one, other in zip(*columns, strict=False)
        ]
        if len(columns[0]) == len(columns[1]) and all(parts) and _averages(experiment.columns, sides):
            difference = fmean(part.difference for part in parts if part)
            mixed = np.mean([part.resampled_R for part in parts if part], axis=0)
            count = sum(part.pairs for part in parts if part)
            found = over_resamples(difference, mixed, count, claim.expects, claim.margin or 0, significance)
            return Compared("pairs", sides[0]["mean"], sides[1]["mean"], found)
    pairs = list(paired(ours, theirs, *fixed).values())
    means = (sides[0]["mean"], sides[1]["mean"])
    return _over("seeds" if len(pairs) > 1 else "", pairs or [means], claim, significance)


def _headed(columns: Iterable[AnyColumn], heading: str) -> AnyColumn:
    return next(column for column in columns if column.heading == heading)


def _behind(columns: Sequence[AnyColumn], heading: str) -> list[Column]:
    """The columns of scores that a heading is computed from, in order."""
    column = _headed(columns, heading)
    parts = column.mean_of if isinstance(column, MeanColumn) else [heading]
    return [one for one in (_headed(columns, part) for part in parts) if isinstance(one, Column)]


def _averages(columns: Sequence[AnyColumn], sides: Iterable[Row]) -> bool:
    """Whether both sides are a score or a mean of scores."""
    return all(isinstance(_headed(columns, row["heading"]), Column | MeanColumn) for row in sides)


class _Resampled(NamedTuple):
    """One task's difference, as it is and in each of R resamples of its pairs."""

    difference: float
    resampled_R: Any
    pairs: int


def _resampled(
    ours: Column, theirs: Column, runs: Sequence[str], material: Material, significance: Significance
) -> _Resampled | None:
    """None for a column that is not one correlation by ranks over all pairs of a task."""
    columns = (ours, theirs)
    found = [material.pairs.get((run, column.suite)) for run, column in zip(runs, columns, strict=True)]
    if found[0] is None or found[1] is None or ours.task != theirs.task:
        return None
    if any((column.aggregation, column.metric) != ("all", "spearman") for column in columns):
        return None
    one, other = (table.filter(pc.equal(table["task"], ours.task)) for table in found if table is not None)
    gold = one["gold"].to_numpy()
    if not np.array_equal(gold, other["gold"].to_numpy()):
        what = f"{' and '.join(runs)} were scored on different pairs of {ours.task}"
        raise DataError(f"{what}. Rerun their evaluation.")
    cosines = one["cosine"].to_numpy(), other["cosine"].to_numpy()
    return _Resampled(
        observed(gold, *cosines) * ours.scale,
        resampled(gold, *cosines, significance) * ours.scale,
        len(gold),
    )
