"""A study as its graph sees it: the checked configuration, and the grids, runs and encoders that it asks for.

Each of them knows its files and what it reads, which rules, tables, figures and claims ask it.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from workflow_scripts.errors import one_line_errors, refuse
from workflow_scripts.figures.base import MODELS
from workflow_scripts.graph.call import Config
from workflow_scripts.graph.checks import read_grids, study_findings
from workflow_scripts.graph.configuration import placed
from workflow_scripts.graph.place import from_here
from workflow_scripts.graph.references import encoders_reached, source_corpus
from workflow_scripts.graph.runs import adapting_training, all_runs, members_of, parts_of, read_run
from workflow_scripts.graph.schema import (
    AdaptedEncoder,
    AnyEncoder,
    Configuration,
    EncoderFromRuns,
    FetchedEncoder,
    GridBlock,
)
from workflow_scripts.methods import method_modules, readout_modules
from workflow_scripts.provenance.closure import code_files
from workflow_scripts.settings import grids as asked
from workflow_scripts.settings import suites
from workflow_scripts.settings.extraction import Show
from workflow_scripts.settings.grids import EXTRACTION, Column, PathColumn, is_measured, paper_of
from workflow_scripts.settings.methods import AnyMethod
from workflow_scripts.settings.training import Development, Training

ENSEMBLE = "models.ensemble"
_SCORES = "<results>/scores/{kind}/{suite}/{run}/seed{seed}.parquet"


@dataclass(frozen=True)
class Study:
    """The study from which rules start; nothing in it changes after it is made."""

    settings: Configuration
    plain: Config
    """The configuration as its files have it: only keys that they write down override others."""
    blocks: Mapping[str, GridBlock]
    """Its grids."""
    root: Path
    """Folder of the Snakefile."""

    @property
    def folder(self) -> str:
        """Folder of the study's results below the working directory."""
        return f"results/{self.settings.name}"

    @property
    def data_root(self) -> Path | None:
        """The folder of local data."""
        return data_root_of(self.settings.data_root)

    @property
    def shows_extraction(self) -> bool:
        """Whether the experiments name the extraction study."""
        return EXTRACTION in self.settings.experiments

    @property
    def shown_extraction(self) -> Show:
        """Tables and figures of the extraction study; none unless the experiments name it."""
        return (
            self.settings.extraction.show
            if self.shows_extraction
            else Show(statistics=[], tables=[], figures=[])
        )

    @cached_property
    def grids(self) -> "dict[str, Grid]":
        """Grids by their names."""
        return {name: Grid(self, name, block) for name, block in self.blocks.items()}

    @cached_property
    def encoders(self) -> "dict[str, Encoder]":
        """Encoders by their names."""
        return {name: Encoder(self, name, block) for name, block in self.settings.encoders.items()}

    def paper_grids(self, paper: str | None = None, *, timed: bool = False) -> "list[Grid]":
        """Grids of one paper, or all; of those, perhaps the ones alone whose tables have measured columns."""
        grids = [grid for name, grid in self.grids.items() if paper in (None, paper_of(name))]
        return [grid for grid in grids if not timed or any(map(is_measured, grid.columns))]

    @cached_property
    def suites(self) -> "dict[str, Suite]":
        """Suites by their names, which no two kinds share."""
        kinds = self.settings.suites.by_kind.values()
        return {name: Suite(self, name, block) for named in kinds for name, block in named.items()}

    @cached_property
    def runs(self) -> "dict[str, Run]":
        """Every run of every grid, and those that they are made from, each with all seeds that are asked of it."""
        runs, found = all_runs(self.blocks, self.settings.encoders), {}
        for name, run in runs.items():
            merged, mistakes = read_run(self.plain, run)
            assert merged, mistakes
            starts = run.encoder, run.corpus, run.teacher
            found[name] = Run(self, name, run, *starts, merged.method, merged.training, merged.development)
        return found

    def per_run(self, pattern: str) -> list[str]:
        """A path for every run and seed."""
        return [file for run in self.runs.values() for file in run.files(pattern)]

    @cached_property
    def trained(self) -> "dict[str, Run]":
        """Runs that are trained."""
        return {name: run for name, run in self.runs.items() if run.corpus}

    @property
    def read_encoders(self) -> list[str]:
        """Encoders behind runs that are fetched or adapted."""
        named = {encoder for run in self.runs.values() for encoder in (run.encoder, run.teacher) if encoder}
        reached = encoders_reached(self.settings.encoders, named)
        return sorted(name for name in reached if not isinstance(self.encoders[name].block, EncoderFromRuns))

    @cached_property
    def read_corpora(self) -> list[str]:
        """Corpora that runs or their encoders train on."""
        encoders = {encoder for run in self.runs.values() for encoder in (run.encoder, run.teacher)}
        return sorted({str(run.corpus) for run in self.trained.values()} | self.behind(encoders)[1])

    @cached_property
    def asked_pools(self) -> list[str]:
        """Pools of exemplars that the study makes, for its runs or without any."""
        pools = (run.pool for run in self.runs.values())
        return sorted({*self.settings.exemplar_pools, *filter(None, pools)})

    @cached_property
    def evaluation_sets(self) -> list[str]:
        """Datasets that the study evaluates on, the development set among them."""
        evaluated = {name for grid in self.grids.values() for name in grid.tasks.values()}
        development = self.settings.development.dataset if self.trained else None
        return sorted(evaluated | {*filter(None, [development])})

    def behind(self, encoders: Iterable[str | None]) -> tuple[set[str], set[str]]:
        """Encoders that are fetched, and corpora, that encoders come from: by adaptation, runs or teachers of runs."""
        names = encoders_reached(self.settings.encoders, filter(None, encoders))
        reached = [self.encoders[name] for name in names]
        adapted = {one.block.adapt.corpus for one in reached if isinstance(one.block, AdaptedEncoder)}
        trained = {run.corpus for one in reached for run in one.members().values() if run.corpus}
        return {one.name for one in reached if isinstance(one.block, FetchedEncoder)}, adapted | trained


@dataclass(frozen=True)
class Encoder:
    """An encoder that is fetched, adapted, or consists of runs."""

    study: Study = field(repr=False)
    name: str
    block: AnyEncoder

    def members(self, seeds: Sequence[int] = (0,)) -> dict[str, asked.Run]:
        """The runs that it consists of, in order; none of one that is fetched or adapted."""
        return members_of(self.study.settings.encoders, self.name, seeds)

    def models(self, seed: str) -> list[str]:
        """Models of the runs that it consists of, each by the seed that goes with ``seed``."""
        members = (self.study.runs[name] for name in self.members([int(seed)]))
        seeds = ((run.name, run.asked.seed_for(int(seed))) for run in members)
        return [MODELS.format(run=name, seed=number) for name, number in seeds]

    @property
    def modules(self) -> list[str]:
        """Modules that loading its runs imports by name."""
        return sorted({module for name in self.members() for module in self.study.runs[name].loading})

    @cached_property
    def training(self) -> Training:
        """Settings of the training that adapts it."""
        return Training.parse(adapting_training(self.study.plain, self.name), f"encoders.{self.name}.adapt")

    @property
    def continue_mlm(self) -> Config:
        """Settings that decide this training, without those of its block."""
        shared = self.study.settings.continue_mlm.model_dump(mode="json")
        return shared | {"training": self.training.deciding()}

    @property
    def adapt(self) -> Config:
        """Its block's settings of the adaptation, without those of the training."""
        assert isinstance(self.block, AdaptedEncoder)
        return self.block.adapt.model_dump(mode="json", exclude={"training"})


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
        return {name: self.study.settings.mteb.lists[name] for name in getattr(self.block, "lists", ())}

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
    def decides(self) -> Config:
        """Settings of its training that decide a result."""
        return self.training.deciding()

    @property
    def members(self) -> list[str]:
        """The runs that it is made of, in order: Snakemake compares inputs as a set."""
        return [*self.study.encoders[self.encoder].members()]

    @property
    def labels(self) -> list[str]:
        """The substitution that it makes, if its encoder consists of runs in place of others."""
        return [*filter(None, [getattr(self.study.encoders[self.encoder].block, "label", None)])]

    @property
    def pool(self) -> str | None:
        """The pool of exemplars that its method reads, if any."""
        return getattr(self.method, "pool", None)

    @property
    def words_of(self) -> str | None:
        """The corpus whose frequent words its method reads, if it reads any."""
        return self.corpus if getattr(self.method, "words", None) else None

    @property
    def length(self) -> str:
        """How long its training lasts, as tables print it."""
        epochs, steps = self.training.epochs, self.training.max_steps
        return f"{steps:,} steps" if epochs is None else f"{epochs} epoch{'s' if epochs > 1 else ''}"

    @property
    def first_encoder(self) -> str:
        """The fetched or adapted encoder that it starts from; behind joined runs, that of the first."""
        encoder = self.encoder
        while members := self.study.encoders[encoder].members():
            encoder = next(iter(members.values())).encoder
        return encoder

    @property
    def dev(self) -> str:
        """Pairs by which it chooses a checkpoint: a dataset's, or held-out text of what its corpus is made of."""
        if dataset := self.study.settings.development.dataset:
            return f"<results>/datasets/{dataset}.parquet"
        return f"<results>/corpora/{source_corpus(self.study.settings, str(self.corpus))}/dev.parquet"

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
        several = {ENSEMBLE} & {*behind, *_ensemble_module(self.method.module)}
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
        """Every run that it asks for, with the seeds that it asks for."""
        runs = asked.runs_of(self.block)
        return {name: replace(self.study.runs[name], asked=run) for name, run in runs.items()}

    @property
    def trained(self) -> list[Run]:
        """Runs that are trained."""
        return [run for run in self.runs.values() if run.corpus]

    @property
    def tasks(self) -> dict[str, str]:
        """Tasks that it evaluates on, each with the dataset that it reads."""
        named = [suite for suites in self.block.suites.by_kind.values() for suite in suites]
        return {key: value for name in named for key, value in self.study.suites[name].block.tasks.items()}

    @property
    def encoder_per_size(self) -> list[str]:
        """One of the encoders of its runs for each class of size."""
        settings = self.study.settings
        parts = {part for run in self.runs.values() for part in parts_of(settings.encoders, run.encoder)}
        return [*{settings.fetched(part).size: part for part in parts}.values()]

    @property
    def published(self) -> list[str]:
        """Tables of papers that it names."""
        return [f"resources/published/{table}.csv" for table in self.block.published]

    def suite_files(self, pattern: str, *, run: Run | None = None, timed: bool = False) -> list[str]:
        """A path for each suite, or for those of measured columns, and for each run and seed, or those of one run."""
        shown = {column.suite for column in self.columns if isinstance(column, Column) and column.measured}
        filled = (
            pattern.replace("{kind}", kind).replace("{suite}", suite)
            for kind, named in self.block.suites.by_kind.items()
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
    def development(self) -> str | None:
        """The development set, if a column is of it."""
        dataset = self.study.settings.development.dataset
        return dataset if dataset in {getattr(column, "task", None) for column in self.columns} else None

    @property
    def lengths(self) -> dict[str, str] | None:
        """How long each run is trained, where they differ."""
        lengths = {run.name: run.length for run in self.trained}
        return lengths if len({*lengths.values()}) > 1 else None


def open_study(
    config: Config,
    root: Path,
    configfiles: Iterable[str | Path] = (),
    given: Mapping[str, Any] | None = None,
) -> Study:
    """Check a configuration and expand its grids; ends the process with a line for each thing that is wrong.

    Args:
        config: As ``configuration.load_config`` merges it.
        root: Folder of the Snakefile.
        configfiles: As after --configfile.
        given: Of the command line.
    """
    with one_line_errors():
        plain, findings = read_grids(config, root / "config")
        data_root = data_root_of(config.get("data_root"))
        settings, grids, more = study_findings(config, plain, root, data_root)
        files = [*map(from_here, configfiles)]
        refuse(placed(finding, root, files, given or {}) for finding in [*findings, *more])
        study = Study(settings, config, grids, root)
        study.runs  # noqa: B018  (of which two may have one name)
    # These reach jobs by their environment, since they decide no result.
    os.environ["SEMBLANCE_CACHE"] = str(Path(settings.cache).expanduser())
    os.environ["SEMBLANCE_CACHE_GIGABYTES"] = str(settings.cache_gigabytes)
    os.environ.setdefault("SEMBLANCE_ANSWERS", settings.answers)
    if data_root:
        os.environ["SEMBLANCE_DATA"] = str(data_root)
    if settings.offline:
        os.environ["SEMBLANCE_OFFLINE"] = "1"
    return study


def data_root_of(named: object) -> Path | None:
    """The folder of local data: the setting, or else the environment variable SEMBLANCE_DATA; ~ is a home folder."""
    root = named or os.environ.get("SEMBLANCE_DATA")
    return Path(str(root)).expanduser().absolute() if root else None


@cache
def _ensemble_module(method: str) -> list[str]:
    """The module that loads several encoders, where a method makes such a model: its code imports it."""
    loads = f"workflow_scripts/{ENSEMBLE.replace('.', '/')}.py" in code_files(f"methods.{method}")
    return [ENSEMBLE] if loads else []
