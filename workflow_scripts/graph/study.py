"""A study as its graph sees it: the configuration, and the grids, runs and encoders that it asks for.

Each of them knows its files and what it reads, which rules, tables, figures and claims ask it. The settings of a run
are merged from all that may override them. Of an encoder that is on this machine before anything is read, its own
config.json says how large it is and of which kind; whether it drops out or attends both ways is seen when it is loaded.
Memory and time decide no result, so Snakemake reruns nothing for them.
"""

import json
import os
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, reduce
from itertools import chain
from pathlib import Path
from typing import Any

from workflow_scripts.data.published import encoder_folder
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.figures.base import MODELS
from workflow_scripts.graph.configuration import read
from workflow_scripts.graph.schema import (
    AdaptedEncoder,
    AnyEncoder,
    Configuration,
    EncoderFromRuns,
    FetchedEncoder,
    GridBlock,
    RunSettings,
)
from workflow_scripts.graph.slices import Config, Wildcards, as_json
from workflow_scripts.methods import method_modules, readout_modules
from workflow_scripts.settings import grids as asked
from workflow_scripts.settings import suites
from workflow_scripts.settings.extraction import Show
from workflow_scripts.settings.grids import (
    EXTRACTION,
    Column,
    PathColumn,
    expand,
    is_measured,
    merged,
    paper_of,
)
from workflow_scripts.settings.methods import AnyMethod
from workflow_scripts.settings.readouts import BUILT_AS_BERT, Size
from workflow_scripts.settings.sources import EncoderBlock, HubEncoder
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
    gaps: Mapping[str, str] = field(default_factory=dict)
    """Runs that cannot be made, each with the reason (``graph.gaps``)."""

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
        found = {}
        for name, run in all_runs(self.blocks, self.settings.encoders).items():
            read_as, mistakes = read_run(self.plain, run)
            assert read_as, mistakes
            starts = run.encoder, run.corpus, run.teacher
            found[name] = Run(self, name, run, *starts, read_as.method, read_as.training, read_as.development)
        return found

    @cached_property
    def made(self) -> "dict[str, Run]":
        """Return the runs that a call makes: those of every grid without gaps, and those that they are made from."""
        asked_for = all_runs(self.blocks, self.settings.encoders, self.gaps)
        return {name: replace(self.runs[name], asked=run) for name, run in asked_for.items()}

    def per_run(self, pattern: str) -> list[str]:
        """A path for every run that is made, and every seed of it."""
        return [file for run in self.made.values() for file in run.files(pattern)]

    @cached_property
    def trained(self) -> "dict[str, Run]":
        """Runs that are trained, gaps included."""
        return {name: run for name, run in self.runs.items() if run.corpus}

    @cached_property
    def trainings(self) -> "dict[str, Run]":
        """Return the runs that are trained by a call."""
        return {name: run for name, run in self.made.items() if run.corpus}

    @cached_property
    def _named(self) -> set[str | None]:
        """Encoders and teachers that runs name."""
        return {encoder for run in self.made.values() for encoder in (run.encoder, run.teacher)}

    @property
    def read_encoders(self) -> list[str]:
        """Encoders behind runs that are fetched or adapted."""
        reached = self.reached(self._named)
        return sorted(name for name in reached if not isinstance(self.encoders[name].block, EncoderFromRuns))

    @cached_property
    def read_corpora(self) -> list[str]:
        """Corpora that runs or their encoders train on."""
        fitted = {run.fitted_on for run in self.made.values() if run.fitted_on}
        trained = {str(run.corpus) for run in self.trainings.values()}
        return sorted(trained | fitted | self.behind(self._named)[1])

    @cached_property
    def asked_pools(self) -> list[str]:
        """Pools of exemplars that the study makes, for its runs or without any."""
        pools = (run.pool for run in self.made.values())
        return sorted({*self.settings.exemplar_pools, *filter(None, pools)})

    @cached_property
    def evaluation_sets(self) -> list[str]:
        """Datasets that the study evaluates on, the development set among them."""
        evaluated = {name for grid in self.grids.values() for name in grid.tasks.values()}
        development = self.settings.development.dataset if self.trainings else None
        return sorted(evaluated | {*filter(None, [development])})

    def behind(self, encoders: Iterable[str | None]) -> tuple[set[str], set[str]]:
        """Encoders that are fetched, and corpora, that encoders come from: by adaptation, runs or teachers of runs."""
        reached = [self.encoders[name] for name in self.reached(encoders)]
        adapted = {one.block.adapt.corpus for one in reached if isinstance(one.block, AdaptedEncoder)}
        trained = {run.corpus for one in reached for run in one.members().values() if run.corpus}
        return {one.name for one in reached if isinstance(one.block, FetchedEncoder)}, adapted | trained

    def reached(self, names: Iterable[str | None]) -> set[str]:
        """Encoders that are defined, and all that they are made from."""
        found, pending = set[str](), self.encoders.keys() & {*names}
        while pending:
            found |= pending
            starts = {one for name in pending for one in self.encoders[name].starts}
            pending = (self.encoders.keys() & starts) - found
        return found


@dataclass(frozen=True)
class Encoder:
    """An encoder that is fetched, adapted, or consists of runs."""

    study: Study = field(repr=False)
    name: str
    block: AnyEncoder

    def members(self, seeds: Sequence[int] = (0,)) -> dict[str, asked.Run]:
        """The runs that it consists of, in order; none of one that is fetched or adapted."""
        return members_of(self.block, seeds)

    @property
    def starts(self) -> set[str | None]:
        """Encoders that it is made from: its base, or encoders and teachers of its runs."""
        if isinstance(self.block, AdaptedEncoder):
            return {self.block.adapt.base}
        return {name for run in self.members().values() for name in (run.encoder, run.teacher)}

    @cached_property
    def parts(self) -> list[str]:
        """The encoder itself if it is fetched or adapted, or else those that its runs start from."""
        members = self.members().values()
        return [part for run in members for part in self.study.encoders[run.encoder].parts] or [self.name]

    @cached_property
    def size(self) -> Size | None:
        """The size of one that is fetched or adapted; None if nothing is known before it is fetched."""
        if isinstance(self.block, AdaptedEncoder):
            base, scratch = self.study.encoders[self.block.adapt.base].size, self.block.adapt.from_scratch
            if scratch is None:
                return base
            return (base or Size(0, 0))._replace(layers=scratch.layers, width=scratch.width)
        fetch = self.study.settings.fetched(self.name)
        folders = folders_of(fetch, self.study.data_root), [Path(self.study.folder, "encoders", self.name)]
        return next(filter(None, map(_size_in, chain(*folders))), None)

    @property
    def sizes(self) -> list[Size]:
        """Known sizes of it, or of those that its runs start from."""
        return [size for part in self.parts if (size := self.study.encoders[part].size)]

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
    def fitted_on(self) -> str | None:
        """Return the corpus that its method fits something on without training."""
        return self.method.fitted_on

    @property
    def length(self) -> str:
        """How long its training lasts, as tables print it."""
        epochs, steps = self.training.epochs, self.training.max_steps
        return f"{steps:,} steps" if epochs is None else f"{epochs} epoch{'s' if epochs > 1 else ''}"

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
    def every_run(self) -> "dict[str, Run]":
        """Return every run that it asks for, gaps included."""
        runs = asked.runs_of(self.block)
        return {name: replace(self.study.runs[name], asked=run) for name, run in runs.items()}

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


def data_root_of(named: object) -> Path | None:
    """The folder of local data: the setting, or else the environment variable SEMBLANCE_DATA; ~ is a home folder."""
    root = named or os.environ.get("SEMBLANCE_DATA")
    return Path(str(root)).expanduser().absolute() if root else None


_OVERRIDABLE = ("training", "development")
"""Sections of the configuration that a method, a reading and a run can change for themselves."""


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
        asked_for = ((name, run) for name, run in asked.runs_of(grid).items() if name not in without)
        for name, run in asked_for:
            _add(runs, name, run, encoders, f"experiments.{experiment}")
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
        for encoder in filter(None, (run.encoder, run.teacher)):
            for part, made in members_of(encoders.get(encoder), run.seeds).items():
                _add(runs, part, made, encoders, f"encoders.{encoder}.runs")


def members_of(encoder: AnyEncoder | None, seeds: Sequence[int] = (0,)) -> dict[str, asked.Run]:
    """The runs that an encoder consists of, in order; none for one that is fetched or adapted."""
    blocks = encoder.runs if isinstance(encoder, EncoderFromRuns) else ()
    return {part: run for block in blocks for part, run, _ in expand(block, seeds)}


def run_settings(config: Config, run: asked.Run) -> Config:
    """Settings of one run: its method, training and development, with what encoder, method, reading and run override.

    Later ones win: ``training``, then the encoder's, then the method's, then the reading's, then the run's; likewise
    ``development``, which encoders leave alone. A method that names another one as its ``base`` is given that one's
    block, and its training and development settings. A reading that the method lacks changes nothing.

    Args:
        config: As files have it, since only keys that are written down override others.
        run: The run.

    Returns:
        Parts of the configuration, shared with it and so not to be changed.
    """
    block = config["methods"][run.method]
    below = config["methods"][block["base"]] if "base" in block else {}
    method = _method_keys(block) | ({"base": _method_keys(below)} if below else {})
    development = {key: value for key, value in config["development"].items() if key != "dataset"}
    overrides = (
        {"training": config["encoders"].get(run.encoder, {}).get("training", {})},
        *({section: one.get(section, {}) for section in _OVERRIDABLE} for one in (below, block)),
        block.get("readings", {}).get(run.reading, {}),
        run.overrides,
    )
    shared = {"method": method, "training": config["training"], "development": development}
    return reduce(merged, overrides, shared)


def _method_keys(block: Config) -> Config:
    """A block of ``methods`` without training, development and readings."""
    return {key: value for key, value in block.items() if key not in (*_OVERRIDABLE, "readings")}


def read_run(
    config: Config, run: asked.Run, *, partial: bool = False
) -> tuple[RunSettings | None, list[str]]:
    """The settings of one run (``run_settings``), or a line for each thing that is wrong with them.

    Args:
        config: As files have it.
        run: The run.
        partial: Whether the study makes no such run, so that only keys, types and ranges are checked.
    """
    return _read(as_json(run_settings(config, run)), partial)


@cache
def _read(settings: str, partial: bool) -> tuple[RunSettings | None, list[str]]:
    return read(RunSettings, json.loads(settings), "", partial=partial)


def adapting_training(config: Config, encoder: str) -> Config:
    """Settings of the training that adapts an encoder: the shared ones with what its block says of its own."""
    return {**config["continue_mlm"]["training"], **config["encoders"][encoder]["adapt"].get("training", {})}


# Sizes of encoders


_NAMES = (
    ("num_hidden_layers", "n_layers", "n_layer", "num_layers"),
    ("hidden_size", "dim", "n_embd", "d_model"),
)
"""Names that families have for their layers and their width; DistilBERT, GPT-2 and T5 have names of their own."""


def folders_of(encoder: EncoderBlock, data_root: Path | None) -> list[Path]:
    """Folders on this machine that an encoder may be fetched from, whether they are there or not."""
    in_folders = (source for source in encoder.sources if not isinstance(source, HubEncoder))
    return [root / source.path for source in in_folders if (root := source.root(data_root))]


def _size_in(folder: Path) -> Size | None:
    try:
        found = json.loads((encoder_folder(folder) / "config.json").read_text("utf-8"))
        layers, width = (int(found[name]) for names in _NAMES for name in names if name in found)
        return Size(layers, width, _positions(found), found.get("model_type"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, DataError):
        return None


def _positions(found: Mapping[str, Any]) -> int | None:
    """Positions of an encoder: all for BERT; RoBERTa's and MPNet's count from one past their padding."""
    if found.get("model_type") not in (*BUILT_AS_BERT, "mpnet"):
        return None
    before = 0 if found["model_type"] == "bert" else int(found.get("pad_token_id", 1)) + 1
    return int(found["max_position_embeddings"]) - before


# Memory and time


OF_SIZE = {"base": (1, 1), "large": (1, 3), "huge": (5, 60)}
"""Memory and time of a job that computes with one encoder, in those of one with BERT-base.

BERT-large computes 3.5 times as much; seven billion parameters 75 times, and they are 27 GB in float32.
"""

LONGEST = 7 * 24 * 60
"""Upper limit of requested minutes (a week): few queues allow more, and a longer training resumes on retry."""


def resources_of(
    study: Study,
    gigabytes: int,
    *,
    minutes: int = 0,
    hours: int = 0,
    encoders: Callable[[Wildcards], Iterable[str]] = lambda _: (),
) -> dict[str, Callable[..., str | int]]:
    """Return resource functions: memory, such as 16GB, and runtime in minutes, both multiplied by the attempt.

    Args:
        study: The study with the encoders.
        gigabytes: Memory of a job that loads BERT-base or no encoder.
        minutes: Runtime of such a job.
        hours: The same, in hours.
        encoders: Names of the encoders that a job loads; several take the sum of their times.
    """

    @cache
    def factors(*loaded: str) -> list[tuple[int, int]]:
        parts = [part for encoder in loaded for part in study.encoders[encoder].parts]
        return [OF_SIZE[study.settings.fetched(part).size] for part in parts] or [OF_SIZE["base"]]

    def memory(wildcards: Wildcards, attempt: int = 1) -> str:
        return f"{gigabytes * attempt * max(memory for memory, _ in factors(*encoders(wildcards)))}GB"

    def runtime(wildcards: Wildcards, attempt: int = 1) -> int:
        factor = sum(time for _, time in factors(*encoders(wildcards)))
        return min((minutes + 60 * hours) * attempt * factor, LONGEST)

    return {"mem": memory, "runtime": runtime}
