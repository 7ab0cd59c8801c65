"""The claims of papers against the scores of one study: a row per claim (``columns.claims.CLAIMS``).

Sides are compared over what both of them repeat: the seeds of trained runs, the draws of random vectors, or else the
tasks behind a mean of the extraction study, and the sentence pairs of two untrained runs. One value on each side can
be subtracted, but nothing can be said of the difference.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workflow_scripts.columns.claims import CLAIMS, NOT_RUN
from workflow_scripts.columns.extraction import EXTRACTION
from workflow_scripts.columns.scores import SCORES, SIMILARITIES
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
from workflow_scripts.graph.extraction_rows import scattered
from workflow_scripts.graph.runs import Run, runs_of
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.provenance.record import Record
from workflow_scripts.reporting.computed_columns import Values, paired
from workflow_scripts.reporting.extraction_cells import Scores
from workflow_scripts.reporting.extraction_cells import Values as Drawn
from workflow_scripts.reporting.extraction_tables import build, places
from workflow_scripts.reporting.headings import headings_of
from workflow_scripts.reporting.records import record_of, wildcard
from workflow_scripts.reporting.tables import ScoreFile, cells_of
from workflow_scripts.settings.claims import Cell, Comparison, Held, HeldClaim
from workflow_scripts.settings.experiment import AnyColumn, Column, Experiment, MeanColumn, read_by
from workflow_scripts.settings.extraction.cells import Names
from workflow_scripts.settings.extraction.tables import ExtractionTable
from workflow_scripts.settings.significance import Config as Significance

Row = dict[str, Any]
DRAWN = "draw_figure"
"""The rule behind tables that are drawn and not printed."""


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


class Material(NamedTuple):
    """What a study has made that claims are compared by."""

    tables: Mapping[str, Path]
    scores: Mapping[str, Sequence[ScoreFile]]
    """Of trained and untrained runs, by run."""
    pairs: Mapping[tuple[str, str], pa.Table]
    """Scored pairs, by run and suite."""
    extraction: Sequence[pa.Table]
    """Scores of the extraction study."""
    labels: Mapping[str, set[str]]
    """Substitutions that affect each representation of that study."""
    indexed: dict[str, Scores]
    """Those scores as a table of the extraction study reads them, by its name; filled as claims ask for them."""


def of_job(job: Job) -> pa.Table:
    """Judge all claims that a job's study is held to.

    Raises:
        DataError: if an input is damaged, or two sides were scored on different pairs.
    """
    significance = Significance.parse(job.settings["significance"], "significance")
    claims = Held.parse(job.settings["held"], "claims").claims
    material = _material(job)
    return judged(claims, [_compare(claim, material, significance) for claim in claims], significance)


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
    scores: dict[str, list[ScoreFile]] = defaultdict(list)
    labels: dict[str, set[str]] = defaultdict(set)
    extraction = []
    for path in job.many("scores"):
        record = record_of(path)
        if "representation" in record.wildcards:  # of the extraction study
            extraction.append(read_table(path, EXTRACTION))
            labels[record.wildcards["representation"]].update(record.labels)
        else:
            table = read_table(path, SCORES)
            scores[wildcard(path, "run")].append(ScoreFile(table, ()))
    return Material(
        tables={_name_of(path): path for path in job.many("tables")},
        scores=scores,
        pairs={
            (wildcard(path, "run"), wildcard(path, "suite")): read_table(path, SIMILARITIES)
            for path in job.many("pairs")
        },
        extraction=extraction,
        labels=labels,
        indexed={},
    )


def _compare(claim: HeldClaim, material: Material, significance: Significance) -> Found | str:
    """The evidence on one claim, or why there is none."""
    comparison = claim.compared
    if isinstance(comparison, str):
        return comparison
    if comparison.table not in material.tables:
        return f"this study makes no table {comparison.table}"
    path = material.tables[comparison.table]
    record = record_of(path)
    rows = {(row["run"], row["heading"]): row for row in _table(path, record, material).to_pylist()}
    sides = []
    for cell in (comparison.ours, comparison.theirs):
        row = rows.get((cell.run, cell.heading))
        if row is None:
            return f"{comparison.table} of this study has no cell {cell.run}, {cell.heading}"
        if row["mean"] is None:
            return f"{cell.run}, {cell.heading}: {row['note'] or 'no value'}"
        sides.append(row)
    of_table = _in_grid if record.rule == "make_table" else _in_extraction
    return Found(sides[0], sides[1], of_table(comparison, claim, record, material, significance))


def _in_extraction(
    comparison: Comparison, claim: HeldClaim, record: Record, material: Material, significance: Significance
) -> Compared:
    """Over the draws of random vectors, else over the tasks of a mean."""
    ours, theirs = (
        _drawn(cell, comparison.table, record, material) for cell in (comparison.ours, comparison.theirs)
    )
    single = len(ours.by_draw) == 1, len(theirs.by_draw) == 1
    if not all(single):
        draws = paired(ours.by_draw, theirs.by_draw, *single)
        return _over("draws", list(draws.values()), claim, significance)
    if len(ours.by_task) > 1 and ours.by_task.keys() == theirs.by_task.keys():
        tasks = [(ours.by_task[task], theirs.by_task[task]) for task in ours.by_task]
        return _over("tasks", tasks, claim, significance)
    return _over("", [(fmean(ours.by_draw.values()), fmean(theirs.by_draw.values()))], claim, significance)


def _over(
    what: str, pairs: Sequence[tuple[float, float]], claim: HeldClaim, significance: Significance
) -> Compared:
    """Two sides over what both repeat, pair by pair."""
    differences = [one - other for one, other in pairs]
    evidence = over_pairs(differences, claim.expects, claim.margin or 0, significance)
    return Compared(what, fmean(one for one, _ in pairs), fmean(other for _, other in pairs), evidence)


def _name_of(path: Path) -> str:
    """The name of a table, or of the figure that is read as one."""
    record = record_of(path)
    return record.wildcards["figure"] if record.rule == DRAWN else headings_of(path).name


def _table(path: Path, record: Record, material: Material) -> pa.Table:
    """The cells of a table; those behind a figure are made here."""
    if record.rule != DRAWN:
        return read_table(path, TABLE)
    shown, names = _shown(record)
    return build(shown, names, _scores(path.stem, names, material), {}, {}, material.labels)


def _shown(record: Record) -> tuple[ExtractionTable, Names]:
    """What a table of the extraction study shows, or a figure that is read as one."""
    names = Names.parse(record.settings["names"], "extraction")
    block = scattered(record.settings["config"]) if record.rule == DRAWN else record.settings["table"]
    return ExtractionTable.parse(block, "extraction.tables"), names


def _scores(name: str, names: Names, material: Material) -> Scores:
    """Scores of the extraction study by the measures of one table."""
    if name not in material.indexed:
        material.indexed[name] = Scores(material.extraction, names.measures.values())
    return material.indexed[name]


def _drawn(cell: Cell, name: str, record: Record, material: Material) -> Drawn:
    table, names = _shown(record)
    shown = places(table, names)
    several = len({place.group for place in shown}) > 1
    place = next(
        place for place in shown if place.run(several=several) == cell.run and place.column == cell.heading
    )
    measure = names.measures[place.measure]
    return _scores(name, names, material).cell(names.models[place.model], place.variant, measure)


def _in_grid(
    comparison: Comparison, claim: HeldClaim, record: Record, material: Material, significance: Significance
) -> Compared:
    """Over seeds; over sentence pairs where neither run has any."""
    experiment = Experiment.parse(record.settings["experiment"], comparison.table)
    runs = runs_of(experiment.model_dump())
    sides = (comparison.ours, comparison.theirs)
    values = [_seeded(cell, runs[cell.run], experiment, material, comparison.table) for cell in sides]
    fixed = [runs[cell.run].fixed for cell in sides]
    ours, theirs = (fmean(one.by_seed.values()) for one in values)
    if all(fixed):
        columns = [_behind(experiment.columns, cell.heading) for cell in sides]
        parts = [
            _resampled(
                one,
                other,
                [cell.run for cell in sides],
                material,
                significance,
            )
            for one, other in zip(*columns, strict=False)
        ]
        if len(columns[0]) == len(columns[1]) and all(parts) and _averages(experiment.columns, sides):
            difference = fmean(part.difference for part in parts if part)
            mixed = np.mean([part.resampled_R for part in parts if part], axis=0)
            count = sum(part.pairs for part in parts if part)
            found = over_resamples(difference, mixed, count, claim.expects, claim.margin or 0, significance)
            return Compared("pairs", ours, theirs, found)
    pairs = list(paired(values[0].by_seed, values[1].by_seed, *fixed).values())
    return _over("seeds" if len(pairs) > 1 else "", pairs or [(ours, theirs)], claim, significance)


def _seeded(cell: Cell, run: Run, experiment: Experiment, material: Material, place: str) -> Values:
    """A cell as its table has it: of the seeds of that experiment, where another one may have more of the run."""
    columns = _needed(experiment.columns, cell.heading)
    cells = cells_of(columns, material.scores.get(cell.run, ()), [cell.run], f"experiments.{place}")
    values = cells[cell.run, cell.heading]
    return values._replace(
        by_seed={seed: values.by_seed[seed] for seed in values.by_seed if seed in run.seeds}
    )


def _needed(columns: Sequence[AnyColumn], heading: str) -> list[AnyColumn]:
    """A column and all that it is computed from."""
    column = _headed(columns, heading)
    return [*(one for part in sorted(read_by(column)) for one in _needed(columns, part)), column]


def _headed(columns: Iterable[AnyColumn], heading: str) -> AnyColumn:
    return next(column for column in columns if column.heading == heading)


def _behind(columns: Sequence[AnyColumn], heading: str) -> list[Column]:
    """The columns of scores that a heading is computed from, in order."""
    column = _headed(columns, heading)
    parts = column.mean_of if isinstance(column, MeanColumn) else [heading]
    return [one for one in (_headed(columns, part) for part in parts) if isinstance(one, Column)]


def _averages(columns: Sequence[AnyColumn], sides: Iterable[Cell]) -> bool:
    """Whether both sides are a score or a mean of scores."""
    return all(isinstance(_headed(columns, cell.heading), Column | MeanColumn) for cell in sides)


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
