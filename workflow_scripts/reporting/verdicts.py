"""Verdicts on the claims of papers, by the scores of one study: a row per claim (``columns.CLAIMS``).

Two sides are compared over their common repetitions: the seeds of trained runs, the draws of random vectors, the tasks
behind a mean of the extraction study, or the sentence pairs of two untrained runs. If each side has only one value, the
difference can be computed, but not tested.

A claim of a direction is tested two-sidedly, because it can be contradicted as well as supported. A claim that two
numbers are the same is tested for equivalence (``evaluation.significance``). If neither is shown, the claim is
undecided; the smallest difference that a test of only this claim could have detected tells how much that means. A demo
decides no claim: its few steps, seeds and documents are not the scale of a paper.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workflow_scripts.columns import CLAIMS, NOT_RUN, SIMILARITIES
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation.significance import (
    Evidence,
    holm,
    observed,
    over_pairs,
    over_resamples,
    resampled,
)
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.reporting.cells import Row, brief, paired
from workflow_scripts.reporting.records import claimed_tables, experiment_of, record_of, wildcard
from workflow_scripts.settings.grids import Column, Experiment
from workflow_scripts.settings.report import (
    Claim,
    ClaimComparison,
    Expects,
    Scale,
    Significance,
    StudyClaims,
)

Kind = Literal["supported", "contradicted", "undecided"]


class Material(NamedTuple):
    """Tables and scores of a study, for the comparison with claims."""

    cells: Mapping[tuple[str, str, str], Row]
    """Cells (``columns.TABLE``) by table, or by figure that is drawn from a table's cells, then by run and heading."""
    grids: Mapping[str, Experiment]
    """Grids by table; tables of the extraction study have none."""
    pairs: Mapping[tuple[str, str], pa.Table]
    """Scored pairs by run and suite."""
    trained: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    """Length of each run's training, by table, for tables whose runs differ in it."""


class Compared(NamedTuple):
    """Comparison of two cells, with its evidence."""

    sides: Sequence[Row]
    over: str
    """Unit of repetition: seeds, draws, tasks or pairs; empty without repetitions."""
    means: tuple[float, float]
    """Mean of each side over the common repetitions."""
    evidence: Evidence
    trained: str = ""
    """Lengths of both trainings, if they differ."""


def judge_claims(job: Job) -> None:
    """Compare the papers' claims with the scores of a study (rule judge_claims).

    Raises:
        DataError: if an input is damaged, or two sides were scored on different pairs.
    """
    significance = Significance.parse(job.settings["significance"], "significance")
    held = StudyClaims.parse(job.settings["held"], "claims")
    tables = claimed_tables(job.inputs("tables"), job.inputs("figures"))
    material = Material(
        cells={
            (name, row["run"], row["heading"]): row
            for name, (_, table) in tables.items()
            for row in table.to_pylist()
        },
        grids={
            name: experiment_of(made_by)
            for name, (made_by, _) in tables.items()
            if "experiment" in record_of(made_by).settings
        },
        pairs={
            (wildcard(path, "run"), wildcard(path, "suite")): read_table(path, SIMILARITIES)
            for path in job.inputs("pairs")
        },
        trained={
            name: record_of(made_by).settings.get("trained") or {} for name, (made_by, _) in tables.items()
        },
    )
    results = [compare(claim, material, significance) for claim in held.claims]
    job.write({"verdicts": judged(held, results, significance)})


def judged(held: StudyClaims, results: Sequence[Compared | str], significance: Significance) -> pa.Table:
    """Return the table of claims with their verdicts.

    Args:
        held: The claims and the scale of the study.
        results: The comparison of each claim, or the reason why it was not compared.
        significance: Settings of the tests of differences.
    """
    tested = [
        result.evidence.p
        for result in results
        if not isinstance(result, str) and result.evidence.p is not None
    ]
    corrected = iter(holm(tested))
    p_values = [
        None if isinstance(result, str) or result.evidence.p is None else next(corrected)
        for result in results
    ]
    rows = [
        claim.model_dump(exclude={"compared"})
        | (
            {"verdict": NOT_RUN, "reason": result, "labels": []}
            if isinstance(result, str)
            else _compared(claim, result, p, significance, held.scale)
        )
        for claim, result, p in zip(held.claims, results, p_values, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=CLAIMS)


def verdict(
    difference: float, corrected_p: float | None, expects: Expects, margin: float, alpha: float
) -> Kind:
    """Return the verdict on a claim, from a difference and its p-value at the level ``alpha``."""
    if corrected_p is None or corrected_p >= alpha:
        return "undecided"
    agrees = {"same": abs(difference) < margin, "higher": difference > 0, "lower": difference < 0}
    return "supported" if agrees[expects] else "contradicted"


def _compared(
    claim: Claim, compared: Compared, p: float | None, significance: Significance, scale: Scale
) -> Row:
    evidence, comparison, decides = compared.evidence, claim.compared, None if scale == "demo" else p
    assert isinstance(comparison, ClaimComparison)
    kind = verdict(evidence.difference, decides, claim.expects, claim.margin or 0, significance.alpha)
    return {
        "verdict": kind,
        "reason": reason(compared, kind, comparison.note, significance.alpha, scale),
        "table": comparison.table,
        "run": comparison.ours,
        "heading": comparison.heading,
        "baseline": comparison.theirs,
        "baseline_heading": comparison.their_heading,
        "ours": compared.means[0],
        "theirs": compared.means[1],
        "difference": evidence.difference,
        "low": evidence.low,
        "high": evidence.high,
        "over": compared.over,
        "n": evidence.n,
        "detectable": evidence.detectable,
        "p_value": evidence.p,
        "corrected_p": p,
        "labels": sorted({label for side in compared.sides for label in side["labels"]}),
    }


def reason(compared: Compared, kind: Kind, note: str, alpha: float, scale: Scale) -> str:
    """Return the reason of a verdict in one line."""
    evidence, note = compared.evidence, "; ".join(filter(None, [compared.trained, note]))
    direction = "higher" if evidence.difference > 0 else "lower"
    shown, why = f"{brief(abs(evidence.difference))} {direction}" if evidence.difference else "equal", ""
    if evidence.low is None or evidence.high is None:
        several = any((side["seeds"] or 1) > 1 for side in compared.sides)
        fewer = (
            f"fewer than three {compared.over or 'seeds'} in common" if several else "one value on each side"
        )
        return "; ".join(filter(None, [shown, f"{fewer}: not tested", note]))
    if scale == "demo":
        why = "a demo decides no claim"
    elif kind == "undecided" and evidence.p is not None and evidence.p < alpha:
        why = "significant by itself, but not after the correction for all claims"
    elif kind == "undecided":
        missed = f"a true difference below {brief(evidence.detectable or 0)} would mostly go unseen"
        why = f"even if only this claim is tested, {missed}"
    interval = f"{brief(evidence.low)} to {brief(evidence.high)}"
    return "; ".join(filter(None, [f"{shown} ({interval}) over {evidence.n:,} {compared.over}", why, note]))


def compare(claim: Claim, material: Material, significance: Significance) -> Compared | str:
    """Return the evidence on one claim, or the reason why it was not compared."""
    comparison = claim.compared
    if isinstance(comparison, str):
        return comparison
    if comparison.table not in {table for table, _, _ in material.cells}:
        return f"this study makes no table {comparison.table}"
    sides = []
    for run, heading in comparison.cells:
        side = material.cells.get((comparison.table, run, heading))
        if side is None:
            return f"{comparison.table} of this study has no cell {run}, {heading}"
        if side["mean"] is None:
            return f"{run}, {heading}: {side['note'] or 'no value'}"
        sides.append(side)
    lengths = material.trained.get(comparison.table, {})
    trained = dict.fromkeys(lengths.get(side["run"], "no training") for side in sides) if lengths else ()
    tested = _tested(sides, material.grids.get(comparison.table), claim, material, significance)
    return tested._replace(trained=" against ".join(trained) if len(trained) > 1 else "")


def _tested(
    sides: Sequence[Row],
    grid: Experiment | None,
    claim: Claim,
    material: Material,
    significance: Significance,
) -> Compared:
    """Return the comparison of two cells over their common repetitions or, if a grid's runs have none, over pairs."""
    fixed = [grid.runs[row["run"]].fixed if grid else len(row["values"]) == 1 for row in sides]
    if grid and all(fixed) and (parts := _resampled(sides, grid, material, significance)):
        differences, resampled_R, counts = zip(*parts, strict=True)
        evidence = over_resamples(
            fmean(differences), np.mean(resampled_R, axis=0), sum(counts), significance, claim.margin
        )
        return Compared(sides, "pairs", (sides[0]["mean"], sides[1]["mean"]), evidence)
    over, pairs = _repeated(sides, fixed, "seeds" if grid else "draws")
    means = (fmean(ours for ours, _ in pairs), fmean(theirs for _, theirs in pairs))
    evidence = over_pairs([ours - theirs for ours, theirs in pairs], significance, claim.margin)
    return Compared(sides, over, means, evidence)


def _repeated(
    sides: Sequence[Row], fixed: Sequence[bool], repeats: str
) -> tuple[str, list[tuple[float, float]]]:
    """Return the unit of repetition of two cells and their paired values; tasks if both have one value."""
    ours, theirs = sides
    if all(fixed) and repeats == "draws" and len(ours["of_tasks"]) > 1 and ours["task"] == theirs["task"]:
        return "tasks", list(zip(ours["of_tasks"], theirs["of_tasks"], strict=True))
    seeded = [dict(zip(row["repeats"], row["values"], strict=True)) for row in sides]
    pairs = list(paired(seeded, fixed).values())
    return (repeats if len(pairs) > 1 else ""), pairs or [(ours["mean"], theirs["mean"])]


def _resampled(
    sides: Sequence[Row], grid: Experiment, material: Material, significance: Significance
) -> list[tuple[float, Any, int]]:
    """Return for each task behind two cells its difference, its differences in R resamples, and its number of pairs.

    Empty if a cell is neither a rank correlation over all pairs of a task nor a mean of such correlations.
    """
    columns = [grid.averaged(row["heading"]) for row in sides]
    ours, theirs = (
        [
            column
            for column in part
            if isinstance(column, Column) and (column.aggregation, column.metric) == ("all", "spearman")
        ]
        for part in columns
    )
    alike = [column.task for column in ours] == [column.task for column in theirs]
    if not ours or not alike or [ours, theirs] != columns:
        return []
    differences = []
    for our, their in zip(ours, theirs, strict=True):
        task, keys = our.task, [(sides[0]["run"], our.suite), (sides[1]["run"], their.suite)]
        if not material.pairs.keys() >= {*keys}:
            return []
        pairs = [material.pairs[key].filter(pc.field("task") == task) for key in keys]
        gold, same = (table["gold"].to_numpy() for table in pairs)
        if not np.array_equal(gold, same):
            runs = " and ".join(run for run, _ in keys)
            raise DataError(f"{runs} were scored on different pairs of {task}. Rerun their evaluation.")
        cosines = [table["cosine"].to_numpy() for table in pairs]
        mixed_R = resampled(gold, cosines[0], cosines[1], significance)
        differences.append(
            (observed(gold, cosines[0], cosines[1]) * our.scale, mixed_R * our.scale, len(gold))
        )
    return differences
