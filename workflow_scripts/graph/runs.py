"""Runs, suites and grids of a study as its graph sees them: each knows its files, and what it reads."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from workflow_scripts.errors import ConfigError
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

ENSEMBLE = "models.ensemble"
_SCORES = "<results>/scores/{kind}/{suite}/{run}/seed{seed}.parquet"


@dataclass(frozen=True)
class Suite:
    """Tasks that runs are evaluated on together."""

    study: Study = field(repr=False)
    name: str
    block: suites.Suite

    @property
    def datasets(self) -> list[str]:
        """Its datasets, each once."""
        return [f"<results>/datasets/{name}.parquet" for name in dict.fromkeys(self.block.tasks.values())]

    @property
    def lists(self) -> dict[str, dict[str, str]]:
        """Lists of mteb's tasks that it asks for: a change of others reruns nothing."""
        return {name: self.study.settings.mteb.lists[name] for name in self.block.mteb_lists}

    @property
    def fetched(self) -> list[str]:
        """Tasks of mteb whose data it needs."""
        return list(dict.fromkeys(task for tasks in self.lists.values() for task in tasks.values()))


@dataclass(frozen=True)
class Run:
    """One encoder of an experiment: what its grid asks for, its settings and its files."""

    study: Study = field(repr=False)
    name: str
    asked: asked.Run
    encoder: str
    """The encoder that it starts from."""
    corpus: str | None
    """The corpus that it trains on."""
    teacher: str | None
    """The encoder whose vectors it learns."""
    method: AnyMethod
    training: Training
    development: Development

    @property
    def deciding_training(self) -> Config:
        """Settings of its training that decide a result."""
        return self.training.deciding()

    @property
    def members(self) -> list[str]:
        """The runs that it is made of, in order: Snakemake compares inputs as a set."""
        return [*self.study.encoders[self.encoder].members()]

    @property
    def labels(self) -> list[str]:
        """The substitution that it makes, if its encoder consists of runs in place of others."""
        return [*filter(None, [self.study.encoders[self.encoder].block.substitution])]

    @property
    def pool(self) -> str | None:
        """The pool of exemplars that its method reads, if any."""
        return self.method.exemplar_pool

    @property
    def words_of(self) -> str | None:
        """The corpus whose frequent words its method reads, if it reads any."""
        return self.corpus if self.method.reads_words else None

    @property
    def fitted_on(self) -> str | None:
        """Return the corpus that its method fits something on without training."""
        return self.method.fitted_on

    @property
    def length(self) -> str:
        """How long its training lasts, as tables print it."""
        epochs, steps = self.training.epochs, self.training.max_steps
        length = f"{steps:,} steps" if epochs is None else f"{epochs} epoch{'s' if epochs > 1 else ''}"
        return f"at most {length}" if self.training.patience else length

    @property
    def first_encoder(self) -> str:
        """The fetched or adapted encoder that it starts from; behind joined runs, that of the first."""
        return self.study.encoders[self.encoder].parts[0]

    @property
    def dev(self) -> str:
        """Pairs by which it chooses a checkpoint: a dataset's, or held-out text of what its corpus is made of."""
        if dataset := self.study.settings.development.dataset:
            return f"<results>/datasets/{dataset}.parquet"
        return f"<results>/corpora/{self.study.settings.source_corpus(str(self.corpus))}/dev.parquet"

    def start(self, seed: str) -> str | list[str]:
        """The encoder that it starts from, or the models of the runs that it joins."""
        models = self.study.encoders[self.encoder].models(seed)
        return models or f"<results>/encoders/{self.encoder}/record.json"

    def files(self, pattern: str) -> list[str]:
        """A path for every seed; once, if it names none."""
        filled = (
            pattern.replace("{run}", self.name).replace("{seed}", str(seed)) for seed in self.asked.seeds
        )
        return list(dict.fromkeys(filled))

    @property
    def scores(self) -> list[str]:
        """Files of its scores: every seed, and every suite of the grids that ask for them."""
        asking = [grid for grid in self.study.grids.values() if self.name in grid.runs]
        return sorted(
            {file for grid in asking for file in grid.suite_files(_SCORES, run=grid.runs[self.name])}
        )

    @property
    def modules(self) -> list[str]:
        """Modules that making it imports by name: its method's, and those of its member runs."""
        behind = [] if self.corpus else self.study.encoders[self.encoder].modules
        return sorted({*method_modules(self.method), *behind})

    @cached_property
    def loading(self) -> list[str]:
        """Modules that loading its model imports by name; one that is made of others needs theirs."""
        behind = self.study.encoders[self.encoder].modules
        several = [ENSEMBLE] if self.method.starts_from in ("pair", "runs") or ENSEMBLE in behind else []
        return sorted({*(readout_modules(self.method) or behind), *several})


@dataclass(frozen=True)
class Grid:
    """One experiment: its runs, its suites, and the files of its table."""

    study: Study = field(repr=False)
    name: str
    block: GridBlock

    @property
    def columns(self) -> Sequence[asked.AnyColumn]:
        """The columns of its table."""
        return self.block.experiment.columns

    @cached_property
    def runs(self) -> dict[str, Run]:
        """Every run that it asks for and that can be made, with the seeds that it asks for."""
        return {name: run for name, run in self.every_run.items() if name not in self.study.gaps}

    @cached_property
    def every_run(self) -> dict[str, Run]:
        """Return every run that it asks for, gaps included."""
        rows = self.block.expanded.items()
        return {name: replace(self.study.runs[name], asked=row.run) for name, row in rows}

    @property
    def run_names(self) -> dict[str, str]:
        """Return what readers see in place of the identifiers of its runs, where it says so."""
        return {name: row.title for name, row in self.block.expanded.items() if row.title != name}

    @property
    def gaps(self) -> dict[str, str]:
        """Return its runs that cannot be made, each with the reason."""
        return {name: self.study.gaps[name] for name in self.every_run if name in self.study.gaps}

    @property
    def trained(self) -> list[Run]:
        """Runs that are trained."""
        return [run for run in self.runs.values() if run.corpus]

    @property
    def tasks(self) -> dict[str, str]:
        """Tasks that it evaluates on, each with the dataset that it reads."""
        named = [suite for suites in self.block.suites.values() for suite in suites]
        return {key: value for name in named for key, value in self.study.suites[name].block.tasks.items()}

    @property
    def encoder_per_size(self) -> list[str]:
        """One of the encoders of its runs for each class of size."""
        parts = {part for run in self.runs.values() for part in self.study.encoders[run.encoder].parts}
        return [*{self.study.settings.fetched(part).size: part for part in parts}.values()]

    @property
    def printed_in(self) -> list[str]:
        """Grids whose printed numbers it shows; empty for its own."""
        return self.block.printed_in

    @property
    def published(self) -> list[str]:
        """Tables of papers that it names."""
        return [f"resources/published/{table}.csv" for table in self.block.published]

    def suite_files(self, pattern: str, *, run: Run | None = None, timed: bool = False) -> list[str]:
        """A path for each suite, or for those of measured columns, and for each run and seed, or those of one run."""
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
            for one in ([run] if run else self.runs.values())
            for file in one.files(path)
        ]

    @property
    def metrics(self) -> list[str]:
        """Metrics of the training of every run and seed, if a column shows the path of one."""
        shown = any(isinstance(column, PathColumn) for column in self.columns)
        path = "<results>/runs/{run}/seed{seed}/metrics.parquet"
        return [file for run in self.trained if shown for file in run.files(path)]

    @property
    def histories(self) -> list[str]:
        """Return the histories of runs of which a block shows the best."""
        rows, path = self.block.experiment.runs, "<results>/runs/{run}/seed{seed}/history.parquet"
        chosen = (run for run in self.trained if rows[run.name].choice is not None)
        return [file for run in chosen for file in run.files(path)]

    @property
    def development(self) -> list[str] | None:
        """Return the tasks of its columns that read the development set; None without such."""
        dataset = self.study.settings.development.dataset
        shown = {column.task for column in self.columns if isinstance(column, Column)}
        return [task for task, read in self.tasks.items() if read == dataset and task in shown] or None

    @property
    def chosen_by(self) -> dict[str, str]:
        """Return its trained runs, each with the dataset, or corpus, whose pairs choose its checkpoint."""
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
        """How long each run is trained, where they differ."""
        lengths = {run.name: run.length for run in self.trained}
        return lengths if len({*lengths.values()}) > 1 else None


def all_runs(
    grids: Mapping[str, GridBlock], encoders: Mapping[str, AnyEncoder], without: Container[str] = ()
) -> dict[str, asked.Run]:
    """Every run of every grid, and those that they are made from, each with all seeds that are asked of it.

    Args:
        grids: Grids by name.
        encoders: Encoders, of which some consist of runs.
        without: Runs of grids to leave out, with those that only they are made from.

    Raises:
        ConfigError: if one name is given to different runs.
    """
    runs: dict[str, asked.Run] = {}
    for experiment, grid in grids.items():
        for name, row in grid.expanded.items():
            if name not in without:
                _add(runs, name, row.run, encoders, f"experiments.{experiment}")
    return runs


def _add(
    runs: dict[str, asked.Run], name: str, run: asked.Run, encoders: Mapping[str, AnyEncoder], place: str
) -> None:
    """Add a run and those that it is made from to ``runs``."""
    seen = runs.get(name, run)
    if seen._replace(seeds=()) != run._replace(seeds=()):
        raise ConfigError(f"{place}: run {name} differs from another of that name. Give it a tag.")
    joined = run._replace(seeds=tuple(sorted({*seen.seeds, *run.seeds})))
    if runs.get(name) != joined:
        runs[name] = joined
        for encoder in (run.encoder, run.teacher):
            block = encoders.get(encoder or "")
            for part, made in block.members(run.seeds).items() if block else ():
                _add(runs, part, made, encoders, f"encoders.{encoder}.runs")
