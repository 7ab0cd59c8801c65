"""Grids of ``config/experiments``: their runs, with the settings of each, and the columns of their tables."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import chain, product
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, Field, JsonValue, Tag

from workflow_scripts.errors import ConfigError, ErrorDetails, advice, shown
from workflow_scripts.settings.base import Settings, told_by
from workflow_scripts.settings.figures import GridFigures
from workflow_scripts.settings.names import (
    Defined,
    Heading,
    Name,
    Place,
    Printed,
    Refers,
    Repeatable,
    Scored,
    Seed,
    Setting,
)
from workflow_scripts.settings.overrides import Override, laid_over
from workflow_scripts.settings.suites import EvaluatedSuites, Suite, Suites, aggregation_errors

PAPERS = {
    "s2sent": "S2Sent",
    "layerattpooler": "LayerAttPooler",
    "three_r": "3R",
    "jtcse": "JTCSE",
    "extraction": "Extracting Sentence Embeddings",
}
"""Names of the five papers' files, and the papers."""

Config = dict[str, Any]
EXTRACTION = "extraction"
"""Name of the study of vectors without training in ``experiments``, and in the paths of its figures."""

AXES = ("method", "encoder", "corpus", "reading", "teacher")

COMPUTED_FROM = ("mean_of", "ratio_of", "gain_of")
"""Settings of a column that list the columns from which it is computed."""


class Run(NamedTuple):
    """One run of an experiment: method, encoder, corpus, reading, teacher and seeds."""

    method: str
    encoder: str
    corpus: str | None
    reading: str
    overrides: Override
    seeds: tuple[int, ...]
    teacher: str | None = None

    @property
    def fixed(self) -> bool:
        """Return whether the run has one value because nothing in it is random."""
        return self.corpus is None and self.seeds == (0,)

    def seed_for(self, seed: int) -> int:
        """Return the seed of this run that a dependent run of ``seed`` uses; an untrained run has only one."""
        return seed if seed in self.seeds else self.seeds[0]


def paper_of(experiment: str) -> str:
    """Return the paper or study of an experiment: its name up to the table, figure, readings or reference."""
    return re.sub(r"_(table|figure|readings|reference).*", "", experiment)


class Point(NamedTuple):
    """Position of a run in plots: its line, and values of settings, swept or given, by dotted setting.

    A line's name is that of the run without the sweep and, if values are given, without the tag.
    """

    series: str
    values: Config


class GridRun(NamedTuple):
    """A run of a grid, with its name, its block and its baseline."""

    name: str
    title: str
    """Printed name in tables and figures."""
    run: Run
    block: int
    """Number of the block that contains the run."""
    baseline: str | None
    """Baseline of the run; None for a baseline itself."""
    point: Point


def expand(block: "RunBlock", seeds: Sequence[int]) -> Iterator[tuple[str, Run, Point]]:
    """Yield the runs of one block: name, run and point.

    An axis may list several values. A run without a corpus is not trained and has one seed, unless it consists of
    trained runs (``per_seed``). A name ends with the values of the sweep, such as blocks3-frequencies4.
    """
    for axes in product(*(listed(getattr(block, axis)) for axis in AXES)):
        method, encoder, corpus, reading, teacher = axes
        series = ".".join(filter(None, (*axes, block.tag)))
        line = ".".join(filter(None, axes)) if block.values else series
        for values in product(*block.sweep.values()):
            at = dict(zip(block.sweep, values, strict=True))
            swept = (_nested(setting.split("."), value) for setting, value in at.items())
            run = Run(
                method=method,
                encoder=encoder,
                corpus=corpus,
                reading=reading or "default",
                # Checked together with the settings that they override.
                overrides=Override.model_construct(**laid_over(block.overrides.given(), *swept)),
                seeds=tuple(seeds) if corpus or block.per_seed else (0,),
                teacher=teacher,
            )
            swept_part = "-".join(
                f"{setting.rsplit('.', 1)[-1]}{_shown(value)}" for setting, value in at.items()
            )
            yield ".".join(filter(None, [series, swept_part])), run, Point(line, at | block.values)


def _nested(keys: Sequence[str], value: Any) -> Config:
    return {keys[0]: _nested(keys[1:], value) if len(keys) > 1 else value}


def _shown(value: Any) -> str:
    """Return a value as a part of a name: words separated by dashes, no dots."""
    if isinstance(value, list):
        return "_".join(map(_shown, value))
    text = f"{value:g}" if isinstance(value, float) else str(value).lower()
    return f"-{text}" if isinstance(value, str | bool) else text.replace(".", "p")


def listed(value: Any) -> list[Any]:
    """Return the values of an axis as a list; a block may contain one value or a list."""
    return value if isinstance(value, list) else [value]


def scored_columns(columns: Iterable[Mapping[str, Any]], heading: str) -> list[Mapping[str, Any]]:
    """Return the scored columns from which the column of a heading is computed; itself if it is a score."""
    by_heading = {column["heading"]: column for column in columns}
    column = by_heading[heading]
    behind = [part for key in COMPUTED_FROM for part in listed(column.get(key, []))]
    if not behind:
        return [column]
    return [column for part in behind for column in scored_columns(by_heading.values(), part)]


class _Score(Settings):
    """A score of a suite, and how a column prints it."""

    suite: Annotated[str, Refers("grid.suites")]
    aggregation: str
    metric: str
    measured: bool = Field(
        default=False, description="Whether the score is a measured time, which differs between executions."
    )
    scale: float = Field(
        gt=0, description="Factor by which scores are multiplied; 100 prints a correlation in points."
    )
    digits: int = Field(ge=0, le=6, description="Decimals printed.")


class Column(_Score):
    """One score, shown for every run."""

    heading: Printed
    task: str

    def score_errors(self, suite: Suite, lists: Mapping[str, Mapping[str, str]]) -> Iterator[ErrorDetails]:
        """Yield an error if no file of scores, or of times for a measured column, contains the column.

        Args:
            suite: The block of its suite.
            lists: Lists of mteb's tasks, by name.
        """
        scores, times = suite.written(lists), suite.timed()
        tasks, others = (times, scores) if self.measured else (scores, times)
        if self.metric in {name for _, name in others.get(self.task, ())}:
            what = "no time" if self.measured else "a time"
            problem = f"{self.metric} of suite {self.suite} is {what}"
            yield ErrorDetails("measured", problem, f"Write measured: {shown(not self.measured)}.")
            return
        if self.task not in tasks:
            problem = f"{self.task}, which is not a task of suite {self.suite}"
            yield ErrorDetails("task", problem, advice(self.task, sorted(tasks)))
            return
        metrics = sorted({name for _, name in tasks[self.task]})
        if not any(fnmatchcase(self.metric, name) for name in metrics):
            problem = f"{self.metric}, but suite {self.suite} writes no such metric of {self.task}"
            yield ErrorDetails("metric", problem, advice(self.metric, metrics))
            return
        asked = {pattern for pattern, name in tasks[self.task] if fnmatchcase(self.metric, name)}
        who = f"suite {self.suite}"
        yield from aggregation_errors(self.aggregation, asked, "aggregation", who, self.metric)


class TaskColumns(_Score):
    """One score of several tasks, a column for each task."""

    tasks: Annotated[dict[Printed, str], Field(min_length=1)] | Annotated[list[str], Field(min_length=1)] = (
        Field(description="Tasks: a list, whose names become the headings, or headings with their tasks.")
    )

    def written_out(self) -> list[Column]:
        """Return a column for each task of the block."""
        tasks = self.tasks if isinstance(self.tasks, dict) else {task: task for task in self.tasks}
        shared = self.model_dump(exclude={"tasks"})
        return [Column(heading=heading, task=task, **shared) for heading, task in tasks.items()]


class _Printed(Settings):
    heading: Printed
    digits: int = Field(ge=0, le=6, description="Decimals printed.")


class MeanColumn(_Printed):
    """The mean of other columns, computed for each seed."""

    mean_of: list[Scored] = Field(min_length=2, description="Headings of columns of scores.")


class RatioColumn(_Printed):
    """The ratio of two columns, computed for each seed."""

    ratio_of: list[Repeatable] = Field(
        min_length=2,
        max_length=2,
        description="Headings of two columns of scores or means: numerator, denominator.",
    )


class GainColumn(_Printed):
    """A run's gain over its baseline in another column; runs without a baseline have a gap."""

    gain_of: Repeatable = Field(description="Heading of a column of scores or means.")


class PathColumn(_Printed):
    """A method's own metric at one step of the training; runs without the metric have a gap."""

    path_of: str = Field(description="Metric that the method records, such as 3R's threshold.")
    step: int = Field(ge=1, description="Optimiser step, counted from 1.")


AnyColumn = Column | MeanColumn | RatioColumn | GainColumn | PathColumn


def is_measured(column: AnyColumn) -> bool:
    """Return whether a column shows times."""
    return isinstance(column, Column) and column.measured


def read_by(column: AnyColumn) -> list[str]:
    """Return the headings of the columns from which a column is computed."""
    return [
        heading for key in COMPUTED_FROM if hasattr(column, key) for heading in listed(getattr(column, key))
    ]


class RunBlock(Settings):
    """A block of runs of a grid (``expand``); an axis may list several values."""

    method: Annotated[Defined, Refers("methods")]
    encoder: Annotated[Defined, Refers("encoders")]
    corpus: Annotated[Defined | None, Refers("corpora")] = Field(
        default=None, description="Training corpus; omit for a frozen run."
    )
    reading: Defined | None = Field(
        default=None, description="Reading of the method, such as paper or code; omit for the default."
    )
    teacher: Annotated[Defined | None, Refers("encoders", ("single runs",))] = Field(
        default=None,
        description="Encoder with one run in `runs`, whose vectors the student learns to predict.",
    )
    per_seed: bool = Field(
        default=False,
        description="Whether a frozen run of an encoder that consists of runs is made for each of their seeds.",
    )
    name: Printed | None = Field(
        default=None,
        description="Name of these runs in tables and figures; {encoder} and other axes, and the last word of a "
        "swept setting, stand for their values. Omit for the run's identifier.",
    )
    tag: Annotated[str, Field(pattern="^[a-z0-9_-]+$")] | None = Field(
        default=None, description="Suffix of the run's name."
    )
    overrides: Override = Field(
        default=Override(), description="Settings of these runs only; they need a tag."
    )
    sweep: dict[Setting, Annotated[list[JsonValue], Field(min_length=1)]] = Field(
        default={}, description="Lists of values by dotted setting; each combination is a run."
    )
    show_best: bool = Field(
        default=False,
        description="Whether tables show only the run with the best development score, with a note.",
    )
    baseline: str | None = Field(
        default=None, description="Baseline of these runs, written as the grid's; omit for the grid's."
    )
    values: dict[Place, JsonValue] = Field(
        default={}, description="Values of these runs in plots, by dotted setting."
    )

    def name_parts(self, run: Run, point: Point) -> dict[str, Any]:
        """Return the values for the braces of ``name`` in one run: its axes and its swept settings."""
        axes = {axis: getattr(run, axis) for axis in AXES}
        return axes | {setting.rpartition(".")[2]: point.values[setting] for setting in self.sweep}

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Yield an error for unknown braces in a name, and for ``show_best`` of untrained runs."""
        if self.show_best and self.corpus is None:
            yield ErrorDetails(
                "show_best",
                "true, but these runs have no corpus and are not trained",
                "Remove `show_best`, or add a `corpus`.",
            )
        known = [*AXES, *(setting.rpartition(".")[2] for setting in self.sweep)]
        try:
            (self.name or "").format(**dict.fromkeys(known, ""))
        except (LookupError, ValueError) as error:
            yield ErrorDetails(
                "name",
                f"{self.name}: {error} is not an axis or a swept setting",
                f"Choose from: {', '.join(known)}.",
            )


class SeededRunBlock(RunBlock):
    """A block of runs of an experiment, which may have seeds of its own."""

    seeds: Annotated[list[Seed], AfterValidator(sorted)] | None = Field(
        default=None, min_length=1, description="Seeds of these runs; omit for the experiment's."
    )

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Yield an error for seeds of runs that have only one value, too."""
        yield from super().value_errors()
        if self.seeds and self.corpus is None and not self.per_seed:
            yield ErrorDetails(
                "seeds",
                f"{', '.join(map(str, self.seeds))}, but these runs have no corpus and are not trained",
                "Remove `seeds`, or add a `corpus`.",
            )


class _Grid(Settings):
    """The settings of a grid that the job of its table reads."""

    title: Printed
    source: str = Field(description="Paper and table that the grid reproduces.")
    seeds: Annotated[list[Seed], AfterValidator(sorted)] = Field(min_length=1)
    published: list[Annotated[Name, Refers("resources.published")]] = Field(
        default=[],
        description="Files in resources/published, without suffix, whose numbers are printed next to the scores.",
    )
    headline: Heading | None = Field(
        default=None,
        description="Heading of the column that determines colours in figures; omit for the first.",
    )


WrittenColumn = Annotated[
    Annotated[TaskColumns, Tag("tasks")]
    | Annotated[MeanColumn, Tag("mean_of")]
    | Annotated[RatioColumn, Tag("ratio_of")]
    | Annotated[GainColumn, Tag("gain_of")]
    | Annotated[PathColumn, Tag("path_of")]
    | Annotated[Column, Tag("task")],
    told_by("tasks", "mean_of", "ratio_of", "gain_of", "path_of", "task"),
]
"""A column, or a block of several columns; a key that only one form has tells them apart."""


class GridBlock(_Grid, GridFigures):
    """One grid, a file in ``config/experiments``."""

    baseline: str | None = Field(
        description="Baseline of the runs, unless their block has its own; {encoder}, {corpus} and other axes "
        "stand for those of the compared run."
    )
    runs: list[SeededRunBlock] = Field(min_length=1)
    suites: EvaluatedSuites
    columns: list[WrittenColumn] = Field(min_length=1)
    printed_in: list[Name] = Field(
        default=[],
        description="Grids whose printed numbers are shown in the cells of the same run and heading; omit for "
        "this grid's own.",
    )

    @cached_property
    def expanded(self) -> dict[str, GridRun]:
        """Return all runs of the grid, by name.

        Raises:
            ConfigError: if two runs have the same identifier or printed name, or a baseline contains braces of no axis.
        """
        runs: dict[str, GridRun] = {}
        for number, block in enumerate(self.runs):
            for name, run, point in expand(block, block.seeds or self.seeds):
                if name in runs:
                    advice = "Remove one" if runs[name].run == run else "Add a `tag` to one"
                    raise ConfigError(f"{self.title}: two runs are named {name}. {advice}.")
                baseline = self._filled(block.baseline or self.baseline, run)
                title = block.name.format(**block.name_parts(run, point)) if block.name else name
                if other := next((grid_run for grid_run in runs.values() if grid_run.title == title), None):
                    raise ConfigError(
                        f"{self.title}: {other.name} and {name} are both called {title}. Add "
                        f"{{encoder}}, or another axis in which they differ, to `name`."
                    )
                compared = None if baseline == name else baseline
                runs[name] = GridRun(name, title, run, number, compared, point)
        return runs

    def _filled(self, baseline: str | None, run: Run) -> str | None:
        """Return the name of a baseline, filled in with the axes of the compared run."""
        try:
            return baseline and baseline.format(**{axis: getattr(run, axis) for axis in AXES})
        except (LookupError, ValueError) as error:
            raise ConfigError(
                f"{self.title}: baseline {baseline}: {error} is not an axis. Choose from: {', '.join(AXES)}."
            ) from error

    @cached_property
    def numbered(self) -> list[tuple[int, AnyColumn]]:
        """Return all columns, one for each task, with the number of their block in the grid's file."""
        return [
            (number, column)
            for number, block in enumerate(self.columns)
            for column in (block.written_out() if isinstance(block, TaskColumns) else [block])
        ]

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Yield an error for each heading that occurs twice."""
        seen: set[str] = set()
        for number, column in self.numbered:
            if column.heading in seen:
                yield ErrorDetails(
                    f"columns.{number}.heading",
                    "another column has that heading",
                    "Rename one.",
                    about=column.heading,
                )
            seen.add(column.heading)

    def own_names(self, suites: Suites) -> dict[str, Collection[str]]:
        """Return the names to which the grid's own references can refer, by kind of reference."""
        columns = [column for _, column in self.numbered if not is_measured(column)]
        scores = [column.heading for column in columns if isinstance(column, Column)]
        means = [column.heading for column in columns if isinstance(column, MeanColumn)]
        asked = {*chain.from_iterable(self.suites.values())}
        return {
            "grid.headings": [column.heading for column in columns],
            "grid.scores": scores,
            "grid.scores and means": scores + means,
            "grid.runs": self.expanded,
            "grid.suites": asked,
            "grid.swept": {setting for block in self.runs for setting in (*block.sweep, *block.values)},
            "grid.positives": [
                task for name, suite in suites.sts.items() if name in asked for task in suite.positives
            ],
        }

    @cached_property
    def experiment(self) -> "Experiment":
        """Return the grid for jobs, with its runs expanded."""
        rows = [
            GridRow(
                run=grid_run.name,
                name=grid_run.title,
                method=grid_run.run.method,
                encoder=grid_run.run.encoder,
                corpus=grid_run.run.corpus,
                reading=grid_run.run.reading,
                teacher=grid_run.run.teacher,
                seeds=[*grid_run.run.seeds],
                fixed=grid_run.run.fixed,
                baseline=grid_run.baseline,
                series=grid_run.point.series,
                choice=grid_run.block if self.runs[grid_run.block].show_best else None,
                swept=bool(self.runs[grid_run.block].sweep),
                coordinates=grid_run.point.values,
            )
            for grid_run in self.expanded.values()
        ]
        shared = {name: getattr(self, name) for name in _Grid.model_fields}
        columns = [column for _, column in self.numbered]
        return Experiment(rows=rows, suites=self.suites, columns=columns, **shared)


class GridRow(Settings):
    """A run of a grid, which is a row of its table."""

    run: str
    name: str = Field(description="Printed name.")
    method: str
    encoder: str
    corpus: str | None
    reading: str
    teacher: str | None
    seeds: list[int]
    fixed: bool = Field(description="Whether the run has one value, because nothing in it is random.")
    baseline: str | None = Field(description="Baseline of the run; null for a baseline itself.")
    choice: int | None = Field(
        description="Number of a block of which only the best run is shown; null: always shown."
    )
    series: str = Field(description="Line of the run in plots of swept settings.")
    swept: bool = Field(description="Whether the coordinates come from a sweep.")
    coordinates: dict[str, JsonValue] = Field(
        description="Values of settings, swept or given, by dotted setting."
    )


class Experiment(_Grid):
    """A grid for jobs, with its runs expanded."""

    rows: list[GridRow]
    suites: dict[str, list[str]] = Field(description="Suites to evaluate on, by kind.")
    columns: list[AnyColumn] = Field(min_length=1)

    @cached_property
    def runs(self) -> dict[str, GridRow]:
        """Return the rows by the names of their runs."""
        return {row.run: row for row in self.rows}

    def averaged(self, heading: str) -> list[AnyColumn]:
        """Return the columns over which the column of a heading is averaged; itself if it is no mean."""
        columns = {column.heading: column for column in self.columns}
        column = columns[heading]
        return [columns[part] for part in column.mean_of] if isinstance(column, MeanColumn) else [column]

    def cells(self) -> set[tuple[str, str]]:
        """Return all pairs of run and heading."""
        return set(product(self.runs, (column.heading for column in self.columns)))

    def part(self, *, measured: bool) -> "Experiment":
        """Return the grid with only its measured columns, or without these."""
        columns = [column for column in self.columns if is_measured(column) == measured]
        return self.model_copy(update={"columns": columns})

    def headline_column(self) -> AnyColumn:
        """Return the column that represents the table in figures, which show no times."""
        shown = self.part(measured=False).columns
        return next(column for column in shown if self.headline in (None, column.heading))
