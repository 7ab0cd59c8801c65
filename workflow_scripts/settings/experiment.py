"""The settings of one experiment: its grid of runs, its table and its figures."""

from collections.abc import Iterator
from itertools import product
from typing import Annotated, Any, Literal

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.errors import unknown
from workflow_scripts.settings.names import Defined, Name, Place, Refers, Seed, Setting
from workflow_scripts.settings.runs import COMPUTED_FROM, listed, runs_of, written_out


class _Score(Settings):
    """What is shown of a suite."""

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
        """The columns."""
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
    """What a run gains over its baseline in another column; runs without a baseline have a gap."""

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
    """Some runs of a grid, expanded by ``settings.runs.runs_of``; an axis may list several values."""

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
    overrides: dict[Literal["method", "training", "development"], dict[str, Any]] = Field(
        default={}, description="Settings of these runs only; they need a tag."
    )
    sweep: dict[Setting, Annotated[list[Any], Field(min_length=1)]] = Field(
        default={}, description="Dotted settings to lists of values; there is a run for each combination."
    )
    baseline: str | None = Field(
        default=None, description="Run that these are compared with, as of the grid; left out for the grid's."
    )
    at: dict[Place, Any] = Field(
        default={}, description="Dotted settings to the values that these runs have, for the plots."
    )


class Experiment(Settings):
    """One grid in ``config/experiments``, without the blocks that ask for figures (``figures``)."""

    title: str
    source: str = Field(description="Paper and table.")
    seeds: list[Seed] = Field(min_length=1)
    baseline: str | None = Field(
        description="Run that others are compared with, unless their block names another; {encoder}, {corpus} and "
        "other axes are those of the run that is compared."
    )
    suites: dict[str, list[str]] = Field(description="Suites to evaluate on, by kind.")
    runs: list[RunBlock] = Field(min_length=1)
    columns: list[AnyColumn] = Field(min_length=1)
    published: list[Name] = Field(
        default=[], description="Files in resources/published whose numbers are printed with the scores."
    )
    headline: str | None = Field(
        default=None, description="Heading that determines colours in figures; omit for the first."
    )

    def numbered(self) -> list[tuple[int, AnyColumn]]:
        """Every column, with its number in the grid's file."""
        return list(enumerate(self.columns))

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
