"""What one grid asks of its table."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from workflow_scripts.config import Slice

Name = Annotated[str, Field(pattern="^[a-z0-9_]+$")]
Setting = Annotated[str, Field(pattern=r"^(method|training)(\.[a-z_]+)+$")]
Place = Annotated[str, Field(pattern=r"^(method|training|exemplars)(\.[a-z_]+)+$")]


class Column(Slice):
    """One score of every run."""

    heading: str
    suite: str
    task: str
    aggregation: str
    metric: str
    scale: float = Field(gt=0, description="100 prints a correlation as points.")
    digits: int = Field(ge=0, le=6, description="Decimals printed.")


class MeanColumn(Slice):
    """The mean of other columns, taken seed by seed."""

    heading: str
    mean_of: list[str] = Field(min_length=2, description="Headings of columns that are no means themselves.")
    digits: int = Field(ge=0, le=6, description="Decimals printed.")


class RunBlock(Slice):
    """Some runs of a grid, expanded by ``dag.runs_of``; an axis may list several values."""

    method: Name | list[Name]
    encoder: Name | list[Name]
    corpus: Name | list[Name] | None = Field(default=None, description="Left out for an untrained run.")
    reading: Name | list[Name] | None = Field(
        default=None, description="paper, code, ...; left out for default."
    )
    teacher: Name | list[Name] | None = Field(
        default=None, description="Encoder with one run in `runs`, whose vectors a student learns."
    )
    of_seeds: bool = Field(
        default=False, description="True for an untrained run of runs, which has a seed for each of theirs."
    )
    tag: Annotated[str, Field(pattern="^[a-z0-9_-]+$")] | None = Field(
        default=None, description="Ends the run's name."
    )
    overrides: dict[Literal["method", "training"], dict[str, Any]] = Field(
        default={}, description="Settings of these runs alone; they want a tag."
    )
    sweep: dict[Setting, Annotated[list[Any], Field(min_length=1)]] = Field(
        default={}, description="Dotted setting to its values; a run for each combination, named after it."
    )
    at: dict[Place, Any] = Field(
        default={}, description="Dotted setting to the value that these runs have there: points of the plots."
    )


class Plot(Slice):
    """A panel that shows a column over the values of one setting, swept or said by ``at``."""

    setting: Place
    label: str = Field(description="What stands on the axis, with its unit.")
    heading: str | None = Field(default=None, description="Column that is shown; left out for the headline.")


class Scatter(Slice):
    """Two columns against each other, a point per run."""

    x: str = Field(description="Heading of a column.")
    y: str = Field(description="Heading of a column.")


class TokenCase(Slice):
    """Two sentences, and the runs in which their words are compared (3R, Table 4 and Figs. 1 and 3)."""

    runs: list[str] = Field(min_length=1, max_length=6, description="Runs of the grid, of one encoder each.")
    sentences: list[str] = Field(min_length=2, max_length=2)


class ModulusSurface(Slice):
    """Which part of the modulus loss is drawn (JTCSE, Fig. 3)."""

    longest: float = Field(gt=1, description="Largest ratio k of the two moduli.")
    steps: int = Field(ge=8, le=200, description="Points along each axis.")


class Experiment(Slice):
    """One grid in ``config/experiments``."""

    title: str
    source: str = Field(description="Paper and table.")
    seeds: list[int] = Field(min_length=1)
    baseline: str | None = Field(description="Run that differences are taken from.")
    suites: dict[str, list[str]] = Field(description="Kind to the suites to evaluate on.")
    runs: list[RunBlock] = Field(min_length=1)
    columns: list[Column | MeanColumn] = Field(min_length=1)
    published: list[Name] = Field(
        default=[], description="Files of resources/published whose numbers stand beside the scores."
    )
    headline: str | None = Field(
        default=None, description="Heading that figures colour by; left out for the first."
    )
    plots: list[Plot] = Field(default=[], description="Panels of the figure of swept settings.")
    scatter: Scatter | None = Field(default=None, description="Columns of the figure of that name.")
    token_similarity: TokenCase | None = Field(
        default=None, description="What the figure of that name shows."
    )
    modulus_surface: ModulusSurface | None = Field(
        default=None, description="What the figure of that name shows; it reads no run."
    )

    @model_validator(mode="after")
    def _plots_show_what_is_swept(self) -> "Experiment":
        swept = {setting for block in self.runs for setting in (*block.sweep, *block.at)}
        for plot in self.plots:
            if plot.setting not in swept:
                raise ValueError(f"plots: no run sweeps {plot.setting}; swept are {sorted(swept)}")
        return self

    @model_validator(mode="after")
    def _headings_are_there_once(self) -> "Experiment":
        headings = [column.heading for column in self.columns]
        scores = {column.heading for column in self.columns if isinstance(column, Column)}
        if len(set(headings)) < len(headings):
            raise ValueError(f"a heading stands twice: {headings}")
        for column in self.columns:
            if isinstance(column, MeanColumn) and (unknown := set(column.mean_of) - scores):
                raise ValueError(
                    f"{column.heading} averages {sorted(unknown)}, no columns of scores; has {sorted(scores)}"
                )
        drawn = [self.scatter.x, self.scatter.y] if self.scatter else []
        for heading in (self.headline, *(plot.heading for plot in self.plots), *drawn):
            if heading is not None and heading not in headings:
                raise ValueError(f"{heading} is no heading; has {headings}")
        return self

    def headline_column(self) -> Column | MeanColumn:
        """The column that stands for the table in figures."""
        return next(column for column in self.columns if self.headline in (None, column.heading))
