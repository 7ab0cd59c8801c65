"""Runs, suites and grids in the graph of a study, with their files and inputs."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.configuration import grid_file
from workflow_scripts.graph.slices import Config
from workflow_scripts.methods import method_modules, readout_modules
from workflow_scripts.settings import grids as asked
from workflow_scripts.settings import suites
from workflow_scripts.settings.encoders import AnyEncoder
from workflow_scripts.settings.grids import Column, GridBlock, PathColumn
from workflow_scripts.settings.methods import AnyMethod
from workflow_scripts.settings.training import Development, Training

if TYPE_CHECKING:
    from workflow_scripts.graph.study import Study

ENSEMBLE, AS_PUBLISHED = "models.ensemble", "models.readouts.as_published"
_SCORES = "<results>/scores/{kind}/{suite}/{run}/seed{seed}.parquet"


@dataclass(frozen=True)
class PlannedSuite:
    """A suite: tasks that are evaluated together."""

    study: Study = field(repr=False)
    name: str
    block: suites.Suite

    @property
    def datasets(self) -> list[str]:
        """Return the files of its datasets, each once."""
        return [f"<results>/datasets/{name}.parquet" for name in dict.fromkeys(self.block.tasks.values())]

    @property
    def lists(self) -> dict[str, dict[str, str]]:
        """Return its lists of mteb's tasks, without others, whose change must rerun nothing."""
        return {name: self.study.settings.mteb.lists[name] for name in self.block.mteb_lists}

    @property
    def fetched(self) -> list[str]:
        """Return the tasks of mteb whose data the suite needs."""
        return list(dict.fromkeys(task for tasks in self.lists.values() for task in tasks.values()))


@dataclass(frozen=True)
class PlannedRun:
    """A run: its entry in a grid, its settings and its files."""

    study: Study = field(repr=False)
    name: str
    asked: asked.Run
    encoder: str
    """Encoder from which the run starts."""
    corpus: str | None
    """Training corpus; None for a frozen run."""
    teacher: str | None
    """Encoder whose vectors the run learns; None without a teacher."""
    method: AnyMethod
    training: Training
    development: Development

    @property
    def result_training(self) -> Config:
        """Return the settings of its training without operational ones."""
        return self.training.result_fields()

    @property
    def members(self) -> list[str]:
        """Return the member runs in order, which Snakemake ignores in inputs."""
        return [*self.study.encoders[self.encoder].members()]

    @property
    def labels(self) -> list[str]:
        """Return the label of its encoder, if this consists of runs that replace others."""
        return [*filter(None, [self.study.encoders[self.encoder].block.substitution])]

    @property
    def pool(self) -> str | None:
        """Return the pool of exemplars that its method reads; None without one."""
        return self.method.exemplar_pool

    @property
    def words_of(self) -> str | None:
        """Return the corpus whose frequent words its method reads; None if it reads none."""
        return self.corpus if self.method.reads_words else None

    @property
    def fitted_on(self) -> str | None:
        """Return the corpus on which its method fits something without training; None without one."""
        return self.method.fitted_on

    @property
    def read_corpora(self) -> set[str]:
        """Return the corpora on which it is trained, something is fitted, or its pool of exemplars is based."""
        pool = self.study.settings.exemplars[self.pool].corpus if self.pool else None
        return {*filter(None, (self.corpus, self.fitted_on, pool))}

    @property
    def length(self) -> str:
        """Return the length of its training in words, for tables."""
        epochs, steps = self.training.epochs, self.training.max_steps
        length = f"{steps:,} steps" if epochs is None else f"{epochs} epoch{'s' if epochs > 1 else ''}"
        return f"at most {length}" if self.training.patience else length

    @property
    def first_encoder(self) -> str:
        """Return the fetched or adapted encoder from which the run, or the first of its member runs, starts."""
        return self.study.encoders[self.encoder].parts[0]

    @property
    def dev(self) -> str:
        """Return the file of pairs that selects its checkpoint: a dataset, or held-out text of its source corpus."""
        if dataset := self.study.settings.development.dataset:
            return f"<results>/datasets/{dataset}.parquet"
        return f"<results>/corpora/{self.study.settings.source_corpus(str(self.corpus))}/dev.parquet"

    def start(self, seed: str) -> str | list[str]:
        """Return the path of the encoder from which the run starts, or of its member runs' models."""
        models = self.study.encoders[self.encoder].models(seed)
        return models or f"<results>/encoders/{self.encoder}/record.json"

    def files(self, pattern: str) -> list[str]:
        """Return a path for each seed; only one if the pattern has no seed."""
        filled = (
            pattern.replace("{run}", self.name).replace("{seed}", str(seed)) for seed in self.asked.seeds
        )
        return list(dict.fromkeys(filled))

    @property
    def scores(self) -> list[str]:
        """Return the files of its scores, for each seed and each suite of its grids."""
        asking = [grid for grid in self.study.grids.values() if self.name in grid.runs]
        return sorted(
            {file for grid in asking for file in grid.suite_files(_SCORES, run=grid.runs[self.name])}
        )

    @property
    def modules(self) -> list[str]:
        """Return modules that making the run imports by name: its method's, and those of its member runs."""
        behind = [] if self.corpus else self.study.encoders[self.encoder].modules
        return sorted({*method_modules(self.method), *behind})

    @cached_property
    def loading(self) -> list[str]:
        """Return modules that loading its model imports by name, with those of member runs."""
        behind = self.study.encoders[self.encoder].modules
        several = [ENSEMBLE] if self.method.starts_from in ("pair", "runs") or ENSEMBLE in behind else []
        return sorted({*(readout_modules(self.method) or behind), *several})


@dataclass(frozen=True)
class Grid:
    """A grid in the graph: its runs, its suites, and the files of its table."""

    study: Study = field(repr=False)
    name: str
    block: GridBlock

    @property
    def columns(self) -> Sequence[asked.AnyColumn]:
        """Return the columns of its table."""
        return self.block.experiment.columns

    @cached_property
    def runs(self) -> dict[str, PlannedRun]:
        """Return its runs without gaps, with this grid's seeds."""
        return {name: run for name, run in self.every_run.items() if name not in self.study.gaps}

    @cached_property
    def every_run(self) -> dict[str, PlannedRun]:
        """Return all its runs, gaps included."""
        rows = self.block.expanded.items()
        return {name: replace(self.study.runs[name], asked=row.run) for name, row in rows}

    @property
    def run_names(self) -> dict[str, str]:
        """Return the printed names of its runs, if they differ from the identifiers."""
        return {name: row.title for name, row in self.block.expanded.items() if row.title != name}

    @property
    def gaps(self) -> dict[str, str]:
        """Return its runs that are gaps, each with the reason."""
        return {name: self.study.gaps[name] for name in self.every_run if name in self.study.gaps}

    @property
    def trained(self) -> list[PlannedRun]:
        """Return its trained runs."""
        return [run for run in self.runs.values() if run.corpus]

    @property
    def tasks(self) -> dict[str, str]:
        """Return its tasks, each with its dataset."""
        named = [suite for suites in self.block.suites.values() for suite in suites]
        return {key: value for name in named for key, value in self.study.suites[name].block.tasks.items()}

    @property
    def encoder_per_size(self) -> list[str]:
        """Return one encoder of its runs for each class of size."""
        parts = {part for run in self.runs.values() for part in self.study.encoders[run.encoder].parts}
        return [*{self.study.settings.fetched(part).size: part for part in parts}.values()]

    @property
    def published(self) -> list[str]:
        """Return the files of its papers' numbers."""
        return [f"resources/published/{table}.csv" for table in self.block.published]

    def suite_files(self, pattern: str, *, run: PlannedRun | None = None, timed: bool = False) -> list[str]:
        """Return the paths of a pattern for every suite, run and seed; ``run`` and ``timed`` restrict these."""
        shown = {column.suite for column in self.columns if isinstance(column, Column) and column.measured}
        filled = (
            pattern.replace("{kind}", kind).replace("{suite}", suite)
            for kind, named in self.block.suites.items()
            for suite in named
            if not timed or suite in shown
        )
        return [
            file
            for path in filled
            for planned in ([run] if run else self.runs.values())
            for file in planned.files(path)
        ]

    @property
    def metrics(self) -> list[str]:
        """Return the files of training metrics for each run and seed, if a column shows one at a step."""
        shown = any(isinstance(column, PathColumn) for column in self.columns)
        path = "<results>/runs/{run}/seed{seed}/metrics.parquet"
        return [file for run in self.trained if shown for file in run.files(path)]

    @property
    def histories(self) -> list[str]:
        """Return the histories of runs in blocks that show only their best run."""
        rows, path = self.block.experiment.runs, "<results>/runs/{run}/seed{seed}/history.parquet"
        chosen = (run for run in self.trained if rows[run.name].choice is not None)
        return [file for run in chosen for file in run.files(path)]

    @property
    def development(self) -> list[str] | None:
        """Return the tasks of its columns that read the development set; None without any."""
        dataset = self.study.settings.development.dataset
        shown = {column.task for column in self.columns if isinstance(column, Column)}
        return [task for task, read in self.tasks.items() if read == dataset and task in shown] or None

    @property
    def chosen_by(self) -> dict[str, str]:
        """Return its trained runs, each with the dataset or corpus whose pairs select its checkpoint."""
        settings = self.study.settings
        return {
            run.name: settings.development.dataset or settings.source_corpus(str(run.corpus))
            for run in self.trained
        }

    @property
    def dev(self) -> list[str]:
        """Return the development sets of its trained runs."""
        return [*dict.fromkeys(run.dev for run in self.trained)]

    @property
    def lengths(self) -> dict[str, str] | None:
        """Return the length of each run's training, if the lengths differ; else None."""
        lengths = {run.name: run.length for run in self.trained}
        return lengths if len({*lengths.values()}) > 1 else None


def all_runs(
    grids: Mapping[str, GridBlock], encoders: Mapping[str, AnyEncoder], without: Container[str] = ()
) -> dict[str, asked.Run]:
    """Return all runs of all grids and their member runs, each with all its seeds.

    Args:
        grids: Grids by name.
        encoders: Encoders by name; some consist of runs.
        without: Runs of grids to leave out, with members that only these runs have.

    Raises:
        ConfigError: if two different runs have the same name.
    """
    runs, paths = dict[str, asked.Run](), dict[str, str]()
    for path, name, run in _with_members(_of_grids(grids, without), encoders):
        seen = runs.get(name, run)
        if seen._replace(seeds=()) != run._replace(seeds=()):
            raise ConfigError(
                f"{path}: run {name} differs from the run of this name in {paths[name]}. Add a `tag` to its block."
            )
        runs[name] = run._replace(seeds=tuple(sorted({*seen.seeds, *run.seeds})))
        paths.setdefault(name, path)
    return runs


_AskedRun = tuple[str, str, asked.Run]
"""The place where a run is configured, its name, and the run."""


def _of_grids(grids: Mapping[str, GridBlock], without: Container[str]) -> Iterator[_AskedRun]:
    """Yield the runs of grids."""
    for experiment, grid in grids.items():
        for name, row in grid.expanded.items():
            if name not in without:
                yield grid_file(experiment), name, row.run


def _with_members(runs: Iterable[_AskedRun], encoders: Mapping[str, AnyEncoder]) -> Iterator[_AskedRun]:
    """Yield runs, each before the member runs of its encoder and teacher."""
    for path, name, run in runs:
        yield path, name, run
        for encoder in (run.encoder, run.teacher):
            if block := encoders.get(encoder or ""):
                members = block.members(run.seeds).items()
                asked_members = ((f"encoders.{encoder}.runs", part, member) for part, member in members)
                yield from _with_members(asked_members, encoders)
