"""One experiment's table: each run's score in each column, over seeds, against the baseline and the paper.

Every number is a mean over seeds, never the best of them. The difference to the row's own baseline is tested over the
seeds that both have. A frozen run has only one seed, since nothing in it is random; its score is compared with every
seed of another run, which makes the test a one-sample t-test. One that is made of trained runs has their seeds.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

import pyarrow as pa

from workflow_scripts.columns.scores import SCORES
from workflow_scripts.columns.tables import TABLE
from workflow_scripts.columns.training import METRICS
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.evaluation.significance import compare
from workflow_scripts.graph.runs import baselines_of, runs_of
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.reporting.cells import Row, Values, cell, paired
from workflow_scripts.reporting.computed_columns import Cells, computed, described, paths
from workflow_scripts.reporting.published import Printed, of_cells
from workflow_scripts.reporting.records import RunTable, record_of, run_tables
from workflow_scripts.settings.experiment import AnyColumn, Column, Experiment, MeanColumn, PathColumn
from workflow_scripts.settings.significance import Config as Significance

CHOSEN_BY = "of the set by which checkpoints were chosen"
"""The note of a trained run's score on its development set."""


class ScoreFile(NamedTuple):
    """Scores of one run and seed on one suite (``columns.scores.SCORES``), and the substitutions that affect them."""

    scores: pa.Table
    labels: Sequence[str]


def build(
    experiment: Experiment,
    files: Iterable[ScoreFile],
    published: Mapping[tuple[str, str], Printed],
    significance: Significance,
    place: str,
    histories: Iterable[RunTable] = (),
    development: str | None = None,
) -> pa.Table:
    """Build one experiment's table.

    Args:
        experiment: The grid.
        files: Every score file of the grid's runs.
        published: Run and heading to the number in the paper.
        significance: How differences are tested.
        place: Name of the grid's file, for errors.
        histories: Metrics of trained runs, where a column shows the path of one.
        development: The dataset by which trained runs chose their checkpoints; None if no column is of it.

    Returns:
        A row per run and column in the grid's order, in the columns of ``columns.tables.TABLE``.

    Raises:
        ConfigError: if a baseline is not a run of the grid, or no run has a column's task or metric.
        DataError: if a run lacks the scores of a suite, or the seeds of a cell come from different data.
    """
    grid = experiment.model_dump()
    runs, baselines = runs_of(grid), baselines_of(grid)
    for baseline in filter(None, baselines.values()):
        if baseline not in runs:
            raise ConfigError(f"{place}.baseline: {baseline} is no run of the grid; has {', '.join(runs)}.")
    scores, labels = _indexed(files)
    of_paths = paths(experiment.columns, histories)
    fixed = {name for name, run in runs.items() if run.fixed}
    cells = _cells(experiment.columns, scores, baselines, fixed, of_paths, place)
    cells = _noted(cells, {name for name, run in runs.items() if run.corpus}, experiment.columns, development)
    return pa.Table.from_pylist(
        [
            cell(
                run,
                column.heading,
                cells[run, column.heading],
                described(experiment.columns, column),
                labels[run],
                published.get((run, column.heading)),
            )
            | _against(baselines[run], run, column.heading, cells, fixed, significance)
            for run in runs
            for column in experiment.columns
        ],
        schema=TABLE,
    )


def of_job(job: Job, *, measured: bool) -> pa.Table:
    """The table of one experiment that a job asks for: its measured columns, or the others.

    Raises:
        ConfigError, DataError: as ``build`` and ``published.of_cells``.
    """
    place = f"experiments.{job.wildcards['experiment']}"
    experiment = Experiment.parse(job.settings["experiment"], place)
    significance = Significance.parse(job.settings["significance"], "significance")
    files = [ScoreFile(read_table(path, SCORES), record_of(path).labels) for path in job.many("scores")]
    contents = {str(path): path.read_bytes() for path in job.many("published")}
    published = of_cells(contents, experiment.cells(), job.wildcards["experiment"])
    histories = run_tables(job.many("metrics"), METRICS)
    return build(
        experiment.part(measured=measured),
        files,
        published,
        significance,
        place,
        histories,
        job.settings.get("development"),
    )


def _cells(
    columns: Sequence[AnyColumn],
    scores: "_Scores",
    baselines: Mapping[str, str | None],
    fixed: set[str],
    of_paths: Cells,
    place: str,
) -> Cells:
    read: dict[tuple[str, str], Values] = {}
    for column in columns:
        for run in baselines:
            if isinstance(column, Column):
                read[run, column.heading] = _values(scores, run, column, place)
            elif isinstance(column, PathColumn):
                read[run, column.heading] = of_paths.get((run, column.heading), _no_path(column))
    return computed(columns, read, baselines, fixed)


def _noted(cells: Cells, trained: set[str], columns: Sequence[AnyColumn], development: str | None) -> Cells:
    """The cells, those of trained runs on their own development set with a note: they are no test."""
    chosen = {one.heading for one in columns if isinstance(one, Column) and one.task == development}
    chosen |= {one.heading for one in columns if isinstance(one, MeanColumn) and chosen & {*one.mean_of}}
    return {
        (run, heading): values._replace(notes=(*values.notes, CHOSEN_BY))
        if run in trained and heading in chosen and values.by_seed
        else values
        for (run, heading), values in cells.items()
    }


class _Scores(NamedTuple):
    """Rows of all score files, indexed by what cells look up."""

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
    """Values of one run in one column, multiplied by its scale."""
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
    if column.measured:
        notes.insert(0, "measured on this machine")
    return Values(
        by_seed={
            row["seed"]: row["value"] * column.scale for row in sorted(found, key=lambda row: row["seed"])
        },
        n=min(sizes, default=0),
        notes=tuple(dict.fromkeys(notes)),
    )


def _no_path(column: PathColumn) -> Values:
    return Values({}, 0, (f"its training has no {column.path_of} of step {column.step}",))


def _against(
    baseline: str | None,
    run: str,
    heading: str,
    cells: Cells,
    fixed: set[str],
    significance: Significance,
) -> Row:
    if baseline is None:
        return {}
    ours, theirs = cells[run, heading].by_seed, cells[baseline, heading].by_seed
    if not ours or not theirs:
        return {"baseline": baseline}
    pairs = paired(ours, theirs, run in fixed, baseline in fixed)
    counted = (
        len({*ours.values()}) == len({*theirs.values()}) == 1
    )  # parameters, say: nothing is left to chance
    if not pairs or counted:
        return {"baseline": baseline, "difference": fmean(ours.values()) - fmean(theirs.values())}
    one, other = zip(*pairs.values(), strict=True)
    result = compare(one, other, significance)
    tested = {"difference": result.difference, "p_value": result.t_p, "detectable": result.detectable}
    return tested | {"baseline": baseline}
