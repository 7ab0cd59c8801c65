"""Grids of ``config/experiments``: their runs, with the settings of each, and the columns of their tables."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import product
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, JsonValue

from workflow_scripts.config import Settings
from workflow_scripts.errors import ConfigError, unknown
from workflow_scripts.settings.names import Defined, Name, Overrides, Place, Refers, Seed, Setting

PAPERS = {
    "s2sent": "S2Sent",
    "layerattpooler": "LayerAttPooler",
    "three_r": "3R",
    "jtcse": "JTCSE",
    "extraction": "Extracting Sentence Embeddings",
}
"""Names of the five papers' files, and the papers."""

Config = dict[str, Any]
OF_A_RUN = ("training", "development")
"""Sections of the configuration that a method, a reading and a run can change for themselves."""

EXTRACTION = "extraction"
"""What names the study of vectors without training among the experiments, and in paths of its figures."""

AXES = ("method", "encoder", "corpus", "reading", "teacher")

COMPUTED_FROM = ("mean_of", "ratio_of", "gain_of")
"""Settings of a column that name the columns that it is computed from."""


class Run(NamedTuple):
    """One encoder of an experiment: which method, on what, read how, and how often."""

    method: str
    encoder: str
    corpus: str | None
    reading: str
    overrides: Config
    seeds: tuple[int, ...]
    teacher: str | None = None

    @property
    def fixed(self) -> bool:
        """Whether it has one value, because nothing in it is random."""
        return self.corpus is None and self.seeds == (0,)

    def seed_for(self, seed: int) -> int:
        """The seed of this run that goes with ``seed`` of a run made from it: its only one if it is not trained."""
        return seed if seed in self.seeds else self.seeds[0]


def paper_of(experiment: str) -> str:
    """The paper, or study, that an experiment belongs to: its name up to the table or figure."""
    return re.sub(r"_(table|figure|readings).*", "", experiment)


class Point(NamedTuple):
    """Where a run lies in the sweep of its block: the name it has without it, and dotted setting to value."""

    series: str
    values: Config


def runs_of(grid: Mapping[str, Any]) -> dict[str, Run]:
    """Every run that one grid asks for, by its name.

    An axis may list several values; a run without a corpus is not trained and has one seed, unless it is made of
    runs that are (``of_seeds``).

    Raises:
        ConfigError: if two runs would have one name.
    """
    runs: dict[str, Run] = {}
    for block in grid["runs"]:
        for name, run, _ in _expand(block, grid["seeds"]):
            if name in runs:
                advice = "Leave one out" if runs[name] == run else "Give one of them a tag"
                raise ConfigError(f"{grid['title']}: two runs are named {name}. {advice}.")
            runs[name] = run
    return runs


def baselines_of(grid: Mapping[str, Any]) -> dict[str, str | None]:
    """The run that each run of a grid is compared with: its block's baseline, else the grid's; None for that run.

    ``{encoder}`` and other axes in a baseline are filled in by those of the run that is compared.

    Raises:
        ConfigError: if a baseline names something that is not an axis.
    """
    found: dict[str, str | None] = {}
    for block in grid["runs"]:
        for name, run, _ in _expand(block, grid["seeds"]):
            baseline = _filled(block.get("baseline") or grid["baseline"], run, grid["title"])
            found[name] = None if name == baseline else baseline
    return found


def _filled(baseline: str | None, run: Run, title: str) -> str | None:
    try:
        return baseline and baseline.format(**{axis: getattr(run, axis) for axis in AXES})
    except (LookupError, ValueError) as error:
        raise ConfigError(
            f"{title}: baseline {baseline}: {error} is not an axis; there are {', '.join(AXES)}."
        ) from error


def points_of(grid: Mapping[str, Any]) -> dict[str, Point]:
    """Where the runs of blocks with a sweep lie, by name."""
    return {
        name: point
        for block in grid["runs"]
        if block.get("sweep")
        for name, _, point in _expand(block, grid["seeds"])
    }


def _expand(block: Config, seeds: Sequence[int]) -> Iterator[tuple[str, Run, Point]]:
    choices = [listed(block.get(axis)) for axis in AXES]
    sweep = block.get("sweep") or {}
    for method, encoder, corpus, reading, teacher in product(*choices):
        named = [method, encoder, corpus, reading, teacher, block.get("tag")]
        series = ".".join(part for part in named if part)
        for values in product(*sweep.values()):
            point = Point(series, dict(zip(sweep, values, strict=True)))
            swept = (_nested(setting.split("."), value) for setting, value in point.values.items())
            run = Run(
                method=method,
                encoder=encoder,
                corpus=corpus,
                reading=reading or "default",
                overrides=reduce(merged, swept, block.get("overrides") or {}),
                seeds=tuple(seeds) if corpus or block.get("of_seeds") else (0,),
                teacher=teacher,
            )
            yield ".".join([series, *_tag(point.values)]), run, point


def _nested(keys: Sequence[str], value: Any) -> Config:
    return {keys[0]: _nested(keys[1:], value) if len(keys) > 1 else value}


def _tag(values: Mapping[str, Any]) -> list[str]:
    """One readable part of a run's name, such as blocks3-frequencies4; none without a sweep."""
    parts = [f"{setting.rsplit('.', 1)[-1]}{_shown(value)}" for setting, value in values.items()]
    return ["-".join(parts)] if parts else []


def _shown(value: Any) -> str:
    """A value as a part of a name: words set off by a dash, no dots."""
    if isinstance(value, list):
        return "_".join(map(_shown, value))
    text = f"{value:g}" if isinstance(value, float) else str(value).lower()
    return f"-{text}" if isinstance(value, str | bool) else text.replace(".", "p")


def listed(value: Any) -> list[Any]:
    """Values of an axis, of which a block may name one or several."""
    return value if isinstance(value, list) else [value]


def all_runs(grids: Mapping[str, Config], encoders: Mapping[str, Config]) -> dict[str, Run]:
    """Every run of every grid, and those that they are made from, each with all seeds that are asked of it.

    Raises:
        ConfigError: if one name is given to different runs.
    """
    runs: dict[str, Run] = {}
    for experiment, grid in grids.items():
        for name, run in runs_of(grid).items():
            _add(runs, name, run, encoders, f"experiments.{experiment}")
    return runs


def _add(runs: dict[str, Run], name: str, run: Run, encoders: Mapping[str, Config], place: str) -> None:
    """Add a run and those that it is made from to ``runs``."""
    seen = runs.get(name, run)
    if seen._replace(seeds=()) != run._replace(seeds=()):
        raise ConfigError(f"{place}: run {name} differs from another of that name. Give it a tag.")
    joined = run._replace(seeds=tuple(sorted({*seen.seeds, *run.seeds})))
    if runs.get(name) != joined:
        runs[name] = joined
        for encoder in filter(None, (run.encoder, run.teacher)):
            for part, made in members_of(encoders, encoder, run.seeds).items():
                _add(runs, part, made, encoders, f"encoders.{encoder}.runs")


def members_of(encoders: Mapping[str, Config], name: str, seeds: Sequence[int]) -> dict[str, Run]:
    """The runs that an encoder consists of, in order; none for one that is fetched or adapted."""
    blocks = encoders[name].get("runs", []) if name in encoders else []
    return {part: run for block in blocks for part, run, _ in _expand(block, seeds)}


def run_settings(config: Config, run: Run) -> Config:
    """Settings of one run: its method, training and development, with what encoder, method, reading and run override.

    Later ones win: ``training``, then the encoder's, then the method's, then the reading's, then the run's; likewise
    ``development``, which encoders leave alone. A method that names another one as its ``base`` is given that one's
    block, and its training and development settings. A reading that the method lacks changes nothing.

    Returns:
        Parts of the configuration, shared with it and so not to be changed.
    """
    block = config["methods"][run.method]
    below = config["methods"][block["base"]] if "base" in block else {}
    method = _method_keys(block) | ({"base": _method_keys(below)} if below else {})
    development = {key: value for key, value in config["development"].items() if key != "dataset"}
    overrides = (
        {"training": config["encoders"][run.encoder].get("training", {})},
        *({section: one.get(section, {}) for section in OF_A_RUN} for one in (below, block)),
        block.get("readings", {}).get(run.reading, {}),
        run.overrides,
    )
    shared = {"method": method, "training": config["training"], "development": development}
    return reduce(merged, overrides, shared)


def _method_keys(block: Config) -> Config:
    """A block of ``methods`` without training, development and readings."""
    return {key: value for key, value in block.items() if key not in (*OF_A_RUN, "readings")}


def adapting_training(config: Config, encoder: str) -> Config:
    """Settings of the training that adapts an encoder: the shared ones with what its block says of its own."""
    return {**config["continue_mlm"]["training"], **config["encoders"][encoder]["adapt"].get("training", {})}


def merged(below: Config, above: Config) -> Config:
    """``below`` with ``above`` laid over it, key by key; neither is changed."""
    inside = {
        key: merged(below[key], value)
        for key, value in above.items()
        if isinstance(value, dict) and isinstance(below.get(key), dict)
    }
    return below | above | inside


def numbered_columns(grid: Mapping[str, Any]) -> Iterator[tuple[int, Config]]:
    """Every column, with the number of the block in the grid's file that asks for it."""
    for number, block in enumerate(grid["columns"]):
        for column in written_out(block):
            yield number, column


def one_column_a_task(grid: Mapping[str, Any]) -> Config:
    """The grid as if every column had been written out."""
    return {**grid, "columns": [column for _, column in numbered_columns(grid)]}


def written_out(block: Config) -> list[Config]:
    """Columns of the tasks that a block lists, headed by their names, or gives by heading."""
    if "tasks" not in block:
        return [block]
    tasks, shared = block["tasks"], {key: value for key, value in block.items() if key != "tasks"}
    headed = tasks if isinstance(tasks, Mapping) else {task: task for task in tasks}
    return [{"heading": heading, "task": task} | shared for heading, task in headed.items()]


def scored_columns(columns: Iterable[Mapping[str, Any]], heading: str) -> list[Mapping[str, Any]]:
    """The columns that one heading of a grid is computed from, itself if it is computed from no other."""
    by_heading = {column["heading"]: column for column in columns}
    column = by_heading[heading]
    behind = [part for key in COMPUTED_FROM for part in listed(column.get(key, []))]
    if not behind:
        return [column]
    return [one for part in behind for one in scored_columns(by_heading.values(), part)]


class _Score(Settings):
    """The score of a suite that a column prints."""

    suite: Annotated[str, Refers("grid.suites")]
    aggregation: str
    metric: str
    measured: bool = Field(
        default=False, description="True for a time, measured by one machine: other runs give other bytes."
    )
    scale: float = Field(gt=0, description="100 prints a correlation as points.")
    digits: int = Field(ge=0, le=6, description="Decimals printed.")


class Column(_Score):
    """One score, shown for every run."""

    heading: str
    task: str


class TaskColumns(_Score):
    """A score of several tasks, each of which is a column."""

    tasks: Annotated[dict[str, str], Field(min_length=1)] | Annotated[list[str], Field(min_length=1)] = Field(
        description="Tasks, whose names are the headings, or headings to tasks."
    )

    def written_out(self) -> list[Column]:
        """A column for each task of the block."""
        return [Column(**block) for block in written_out(self.model_dump())]


class _Printed(Settings):
    heading: str
    digits: int = Field(ge=0, le=6, description="Decimals printed.")


class MeanColumn(_Printed):
    """The mean of other columns, taken seed by seed."""

    mean_of: list[str] = Field(min_length=2, description="Headings of columns of scores.")


class RatioColumn(_Printed):
    """One column divided by another, taken seed by seed."""

    ratio_of: list[str] = Field(
        min_length=2, max_length=2, description="Headings of two columns of scores or means: a over b."
    )


class GainColumn(_Printed):
    """A run's gain over its baseline in another column; runs without a baseline have a gap."""

    gain_of: str = Field(description="Heading of a column of scores or means.")


class PathColumn(_Printed):
    """A method's own metric at one step of the training; runs without the metric have a gap."""

    path_of: str = Field(description="Metric that the method records, such as 3R's threshold.")
    step: int = Field(ge=1, description="Optimiser step, of which the first is 1.")


AnyColumn = Column | MeanColumn | RatioColumn | GainColumn | PathColumn


def is_measured(column: AnyColumn) -> bool:
    """Whether a column shows times."""
    return isinstance(column, Column) and column.measured


def read_by(column: AnyColumn) -> list[str]:
    """Headings of the columns that a column is computed from."""
    return [
        heading for key in COMPUTED_FROM if hasattr(column, key) for heading in listed(getattr(column, key))
    ]


class RunBlock(Settings):
    """Some runs of a grid, expanded by ``runs_of``; an axis may list several values."""

    method: Annotated[Defined, Refers("methods")]
    encoder: Annotated[Defined, Refers("encoders")]
    corpus: Annotated[Defined | None, Refers("corpora")] = Field(
        default=None, description="Omitted for a frozen run."
    )
    reading: Defined | None = Field(
        default=None, description="A reading of the method, such as paper or code; omit for the default."
    )
    teacher: Annotated[Defined | None, Refers("encoders", ("single runs",))] = Field(
        default=None, description="Encoder with one run in `runs`, whose vectors a student learns to predict."
    )
    of_seeds: bool = Field(
        default=False,
        description="True for a frozen run that consists of runs, to have one for each of their seeds.",
    )
    tag: Annotated[str, Field(pattern="^[a-z0-9_-]+$")] | None = Field(
        default=None, description="Suffix of the run's name."
    )
    overrides: dict[Literal["method", "training", "development"], Overrides] = Field(
        default={}, description="Settings of these runs only; they need a tag."
    )
    sweep: dict[Setting, Annotated[list[JsonValue], Field(min_length=1)]] = Field(
        default={}, description="Dotted settings to lists of values; there is a run for each combination."
    )
    baseline: str | None = Field(
        default=None, description="Run that these are compared with, as of the grid; left out for the grid's."
    )
    at: dict[Place, JsonValue] = Field(
        default={}, description="Dotted settings to the values that these runs have, for the plots."
    )


class AnyGrid(Settings):
    """A grid without its suites, columns and figures."""

    title: str
    source: str = Field(description="Paper and table.")
    seeds: list[Seed] = Field(min_length=1)
    baseline: str | None = Field(
        description="Run that others are compared with, unless their block names another; {encoder}, {corpus} and "
        "other axes are those of the run that is compared."
    )
    runs: list[RunBlock] = Field(min_length=1)
    published: list[Name] = Field(
        default=[], description="Files in resources/published whose numbers are printed with the scores."
    )
    headline: str | None = Field(
        default=None, description="Heading that determines colours in figures; omit for the first."
    )

    def numbered(self) -> list[tuple[int, AnyColumn]]:
        """Every column, with its number in the grid's file."""
        raise NotImplementedError

    def conflicts(self) -> Iterator[str]:
        """Seeds and headings are there once, and columns are computed from others that are there."""
        for seed in sorted({seed for seed in self.seeds if self.seeds.count(seed) > 1}):
            yield f"seeds: {seed} is listed twice. Leave one."
        columns = self.numbered()
        repeatable = [column for _, column in columns if not is_measured(column)]
        scores = [column.heading for column in repeatable if isinstance(column, Column)]
        means = [column.heading for column in repeatable if isinstance(column, MeanColumn)]
        seen: set[str] = set()
        for number, column in columns:
            place = f"columns.{number} ({column.heading})"
            if column.heading in seen:
                yield f"{place}.heading: another column has that heading. Rename one."
            seen.add(column.heading)
            known = scores if isinstance(column, MeanColumn) else [*scores, *means]
            for key in COMPUTED_FROM:
                for heading in listed(getattr(column, key, [])):
                    yield from unknown(heading, known, f"{place}.{key}")
        if self.headline is not None:
            yield from unknown(self.headline, [column.heading for column in repeatable], "headline")


class Experiment(AnyGrid):
    """A grid as jobs read it."""

    suites: dict[str, list[str]] = Field(description="Suites to evaluate on, by kind.")
    columns: list[AnyColumn] = Field(min_length=1)

    def numbered(self) -> list[tuple[int, AnyColumn]]:
        """Every column, with its number."""
        return list(enumerate(self.columns))

    def averaged(self, heading: str) -> list[AnyColumn]:
        """The columns that a mean is taken over; of any other column, itself."""
        columns = {column.heading: column for column in self.columns}
        column = columns[heading]
        return [columns[part] for part in column.mean_of] if isinstance(column, MeanColumn) else [column]

    def cells(self) -> set[tuple[str, str]]:
        """Every run and heading."""
        return set(product(runs_of(self.model_dump()), (column.heading for column in self.columns)))

    def part(self, *, measured: bool) -> "Experiment":
        """The grid with its measured columns alone, or with the others."""
        columns = [column for column in self.columns if is_measured(column) == measured]
        return self.model_copy(update={"columns": columns})

    def headline_column(self) -> AnyColumn:
        """The column that represents the table in figures, which show no times."""
        shown = self.part(measured=False).columns
        return next(column for column in shown if self.headline in (None, column.heading))
