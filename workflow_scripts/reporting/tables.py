"""Table of one experiment: each run's score in each column, over seeds, against the baseline and the paper.

Every number is a mean over seeds, never the best of them. The difference to the row's own baseline is tested over the
seeds that both have. A frozen run has only one seed, since nothing in it is random; its score is compared with every
seed of another run, which makes the test a one-sample t-test. A frozen run that consists of trained runs has their
seeds. Columns that are computed from others are computed seed by seed.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from workflow_scripts.columns import HISTORY, METRICS, PAIRS, SCORES, TABLE
from workflow_scripts.data.printed import Printed, cell_numbers
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation.significance import over_pairs
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.provenance.record import Label, gap_label
from workflow_scripts.reporting.cells import CellValues, Row, cell, paired
from workflow_scripts.reporting.records import RunTable, record_of, run_tables
from workflow_scripts.settings.grids import (
    Column,
    Experiment,
    GainColumn,
    MeanColumn,
    PathColumn,
    RatioColumn,
    read_by,
)
from workflow_scripts.settings.report import Significance
from workflow_scripts.settings.training import FEWEST_PAIRS

CHOSEN_BY = "scored on the set that selected the checkpoint"
"""Note of a trained run's score on its development set."""
CHOSEN_BY_FEW = "its checkpoint was chosen by {} pairs"
"""Note of every score of a trained run if its development set is small (``settings.training.FEWEST_PAIRS``)."""


Scored = tuple[pa.Table, Sequence[Label]]
"""Scores of one run and seed on one suite (``columns.SCORES``), and labels of substitutions that affect them."""


def _table(job: Job, *, measured: bool) -> pa.Table:
    """Return the table of a job's experiment: its measured columns, or the others.

    Raises:
        ConfigError, DataError: as ``build`` and ``published.cell_numbers``.
    """
    name = job.wildcards["experiment"]
    experiment = Experiment.parse(job.settings["experiment"], f"experiments.{name}")
    pairs = {name: len(read_table(path, PAIRS)) for path in job.inputs("dev") for name in _names_of(path)}
    chosen_by = job.settings.get("chosen_by", {})
    contents = {str(path): path.read_bytes() for path in job.inputs("published")}
    return build(
        experiment.part(measured=measured),
        [(read_table(path, SCORES), record_of(path).labels) for path in job.inputs("scores")],
        cell_numbers(contents, experiment.cells(), name, job.settings.get("printed_in", ())),
        Significance.parse(job.settings["significance"], "significance"),
        f"experiments.{name}",
        run_tables(job.inputs("metrics"), METRICS),
        job.settings.get("development") or (),
        job.settings.get("gaps", {}),
        {run: pairs[name] for run, name in chosen_by.items() if name in pairs},
        best_runs(experiment, run_tables(job.inputs("histories"), HISTORY)),
    )


def best_runs(experiment: Experiment, histories: Iterable[RunTable]) -> dict[str, str]:
    """Return the best run by the development score of each block that shows only its best run, with a note.

    Args:
        experiment: The grid.
        histories: Histories of the trainings of these blocks. A seed's score is the best of its evaluations, which
            selected its checkpoint; a run's score is the mean over its seeds.
    """
    scores: dict[str, list[float]] = defaultdict(list)
    for history in histories:
        scores[history.run].append(pc.max(history.table["dev_score"]).as_py())
    blocks: dict[int, list[str]] = defaultdict(list)
    for row in experiment.rows:
        if row.choice is not None and row.run in scores:
            blocks[row.choice].append(row.run)
    best = {max(runs, key=lambda run: fmean(scores[run])): len(runs) for runs in blocks.values()}
    return {
        run: f"the best of {count} runs by the development score, {fmean(scores[run]):.4f}"
        for run, count in best.items()
    }


def _names_of(development: Path) -> Iterable[str]:
    """Return the dataset of a development set, or the corpus from which it is held out."""
    return record_of(development).wildcards.values()


def build(
    experiment: Experiment,
    files: Iterable[Scored],
    published: Mapping[tuple[str, ...], Printed],
    significance: Significance,
    grid_file: str,
    histories: Iterable[RunTable] = (),
    development: Collection[str] = (),
    gaps: Mapping[str, str] = MappingProxyType({}),
    pairs: Mapping[str, int] = MappingProxyType({}),
    best: Mapping[str, str] = MappingProxyType({}),
) -> pa.Table:
    """Return one experiment's table.

    Args:
        experiment: The grid.
        files: Every score file of the grid's runs.
        published: Numbers in the paper, by run and heading.
        significance: Settings of the tests of differences.
        grid_file: Name of the grid's file, for errors.
        histories: Metrics of trained runs, if a column shows the path of one.
        development: Tasks of the dataset that selected the checkpoints of trained runs.
        gaps: Reasons why runs without files of scores could not be made, by run.
        pairs: Number of pairs that selected a trained run's checkpoint, by run.
        best: Notes of the runs that blocks show in place of all their runs, by run (``best_runs``).

    Returns:
        A row per run and column in the grid's order, in the columns of ``columns.TABLE``.

    Raises:
        DataError: if the seeds of a cell come from different data.
    """
    table = _Table(experiment, files, histories, gaps, grid_file)
    cells = []
    decided = {experiment.runs[run].choice for run in best}
    for run, about in experiment.runs.items():
        if about.choice in decided and about.choice is not None and run not in best:
            continue
        for heading in table.columns:
            values = table.values(run, heading)
            tasks = {part.task for part in experiment.averaged(heading) if isinstance(part, Column)}
            if about.corpus and values.by_seed and tasks & {*development}:
                values = values._replace(notes=(*values.notes, CHOSEN_BY))
            if values.by_seed and pairs.get(run, FEWEST_PAIRS) < FEWEST_PAIRS:
                values = values._replace(notes=(*values.notes, CHOSEN_BY_FEW.format(pairs[run])))
            if values.by_seed and run in best:
                values = values._replace(notes=(*values.notes, best[run]))
            shows, printed = table.shows(heading), published.get((run, heading))
            row = cell(run, heading, values, shows, table.labels(run, heading), printed)
            cells.append(row | table.against_baseline(run, heading, significance))
    return pa.Table.from_pylist(cells, schema=TABLE)


class _Table:
    """Values of a grid's cells, each computed on first use."""

    def __init__(
        self,
        experiment: Experiment,
        files: Iterable[Scored],
        histories: Iterable[RunTable],
        gaps: Mapping[str, str],
        grid_file: str,
    ) -> None:
        self.columns = {column.heading: column for column in experiment.columns}
        self._baselines = {row.run: row.baseline for row in experiment.rows}
        self._fixed = {row.run for row in experiment.rows if row.fixed}
        self._histories, self._gaps, self._grid_file = list(histories), gaps, grid_file
        rows = [row | {"labels": labels} for scores, labels in files for row in scores.to_pylist()]
        frame = pd.DataFrame(rows, columns=[*SCORES.names, "labels"], dtype=object)
        self._scores = dict(iter(frame.groupby(["run", "suite", "task"])))
        self._labels = {
            suite: {*chain(*labels)} for suite, labels in frame.groupby(["run", "suite"])["labels"]
        }
        self.values = cache(self._values)  # by run and heading

    def labels(self, run: str, heading: str) -> set[Label]:
        """Return the substitutions and gaps that affect a cell: those of its suites."""
        column = self.columns[heading]
        if run in self._gaps:
            return {gap_label(self._gaps[run])}
        if isinstance(column, Column):
            return self._labels[run, column.suite]
        if isinstance(column, PathColumn):  # labels of the training, which all suites of the run inherit
            return set.intersection(*(labels for (of, _), labels in self._labels.items() if of == run))
        return {*chain(*(self.labels(run, part) for part in read_by(column)))}

    def _values(self, run: str, heading: str) -> CellValues:
        """Return the values of a cell by seed."""
        if run in self._gaps:
            return CellValues({}, 0, (self._gaps[run],))
        column = self.columns[heading]
        parts = {part: self.values(run, part) for part in read_by(column)}
        sizes = [part.n for part in parts.values()]
        match column:
            case Column():
                return self._scored(run, column)
            case PathColumn():
                return self._path(run, column)
            case MeanColumn():
                return _combined(parts, lambda *values: fmean(values), sum(sizes))
            case RatioColumn():
                return _combined(
                    parts, lambda above, below: above / below if below else None, next(iter(parts.values())).n
                )
            case GainColumn():
                return self._gain(run, column.gain_of)

    def _scored(self, run: str, column: Column) -> CellValues:
        """Return the values of one run in one column, multiplied by its scale."""
        rows = self._scores[run, column.suite, column.task]
        exact = rows[(rows["aggregation"] == column.aggregation) & (rows["metric"] == column.metric)]
        scores = exact.dropna(subset="value").sort_values("seed")
        if len(sizes := sorted({*scores["n"]})) > 1:
            where = f"{self._grid_file}.columns, {column.heading}"
            raise DataError(f"{where}: seeds of {run} have different data, n {sizes}. Rerun them.")
        notes = ["measured on this machine"] if column.measured and len(scores) else []
        notes += [*rows["note"][rows["value"].isna()]]
        if exact.empty and not notes:
            known = sorted({*rows["aggregation"][rows["metric"] == column.metric]})
            notes = [f"{column.task} has no aggregation {column.aggregation}; has {', '.join(known)}"]
        values = dict(zip(scores["seed"], scores["value"] * column.scale, strict=True))
        return CellValues(
            values, max(sizes, default=0), tuple(dict.fromkeys(filter(None, [*notes, *scores["note"]])))
        )

    def _path(self, run: str, column: PathColumn) -> CellValues:
        """Return the values of a training's own metric at one step; empty for runs without this metric."""
        at_step = (pc.field("metric") == column.path_of) & (pc.field("step") == column.step)
        by_seed = {
            history.seed: value
            for history in self._histories
            if history.run == run
            for value in history.table.filter(at_step)["value"].to_pylist()
        }
        if not by_seed:
            return CellValues({}, 0, (f"its training has no {column.path_of} of step {column.step}",))
        return CellValues(dict(sorted(by_seed.items())), 1, ())

    def _gain(self, run: str, heading: str) -> CellValues:
        """Return the values of a run minus those of its baseline."""
        baseline = self._baselines[run]
        if baseline is None:
            return CellValues({}, 0, ("no baseline",))
        gains = self._gains(run, baseline, heading)
        n = self.values(run, heading).n if gains else 0
        return CellValues(gains, n, () if gains else (f"needs {heading} of a seed that both runs have",))

    def _gains(self, run: str, baseline: str, heading: str) -> dict[int, float]:
        """Return the difference of a cell to that of the baseline, by seed; empty if either is a gap."""
        sides = [self.values(name, heading).by_seed for name in (run, baseline)]
        pairs = paired(sides, [name in self._fixed for name in (run, baseline)]) if all(sides) else {}
        return {seed: ours - theirs for seed, (ours, theirs) in pairs.items()}

    def against_baseline(self, run: str, heading: str, significance: Significance) -> Row:
        """Return the difference of a cell to that of the run's baseline, with its test; empty without a baseline."""
        baseline = self._baselines[run]
        if baseline is None:
            return {}
        ours, theirs = (self.values(name, heading).by_seed.values() for name in (run, baseline))
        if not ours or not theirs:
            return {"baseline": baseline}
        gains = [*self._gains(run, baseline, heading).values()]
        # one value on each side: such as numbers of parameters, which are not random
        if not gains or len({*ours}) == len({*theirs}) == 1:
            return {"baseline": baseline, "difference": fmean(ours) - fmean(theirs)}
        evidence = over_pairs(gains, significance)
        tested = {"difference": evidence.difference, "p_value": evidence.p, "detectable": evidence.detectable}
        return tested | {"baseline": baseline}

    def shows(self, heading: str) -> dict[str, Any]:
        """Return a column's content for ``columns.TABLE``: suite, task, aggregation, metric, scale and digits."""
        column = self.columns[heading]
        if isinstance(column, Column):
            return column.model_dump(include={"suite", "task", "aggregation", "metric", "scale", "digits"})
        behind = [self.shows(part) for part in self.columns if part in read_by(column)]
        shown: dict[str, Any] = {
            key: " and ".join(dict.fromkeys(part[key] for part in behind))
            for key in ("suite", "aggregation", "metric")
        }
        shown |= {"scale": None, "digits": column.digits}
        if isinstance(column, PathColumn):
            return shown | {"suite": "training", "task": f"step {column.step:,}", "metric": column.path_of}
        task = _TASKS[type(column)].format(*read_by(column), all=", ".join(read_by(column)))
        return shown | {"task": task}


_TASKS: dict[type, str] = {
    MeanColumn: "mean of {all}",
    RatioColumn: "{} over {}",
    GainColumn: "{} less that of the baseline",
}
"""Descriptions of columns that are computed from others."""


def _combined(parts: Mapping[str, CellValues], number: Callable[..., float | None], n: int) -> CellValues:
    """Return a number computed from several columns, for the seeds that all of them have; a gap if one is a gap."""
    seeds = {heading: {*part.by_seed} for heading, part in parts.items()}
    every, shared = set.union(*seeds.values()), sorted(set.intersection(*seeds.values()))
    numbers = {seed: number(*(part.by_seed[seed] for part in parts.values())) for seed in shared}
    values = {seed: value for seed, value in numbers.items() if value is not None}
    if gaps := [heading for heading, scored in seeds.items() if not scored]:
        notes = [f"needs {', '.join(gaps)}"]
    elif not shared:
        notes = ["no seed has all of its columns"]
    elif having := ", ".join(heading for heading, scored in seeds.items() if scored < every):
        notes = [f"over {len(shared)} of {len(every)} seeds, which {having} has"]
    else:
        notes = [] if len(values) == len(shared) else [f"{[*parts][-1]} is 0"]
    return CellValues(values, n if values else 0, tuple(notes))


def make_table(job: Job) -> None:
    """Write the table of one experiment: means over seeds, differences, tests (rule make_table)."""
    _write(job, measured=False)


def tabulate_times(job: Job) -> None:
    """Write the measured columns of one experiment's table: latency, retrieval time (rule tabulate_times)."""
    _write(job, measured=True)


def _write(job: Job, *, measured: bool) -> None:
    """Write a table with a label for each reason why some of its runs could not be made."""
    gaps = dict.fromkeys(job.settings.get("gaps", {}).values())
    job.write({"table": _table(job, measured=measured)}, labels=[*map(gap_label, gaps)])
