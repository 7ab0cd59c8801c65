"""What one grid asks of its table."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from workflow_scripts.config import Slice

Name = Annotated[str, Field(pattern="^[a-z0-9_]+$")]
Setting = Annotated[str, Field(pattern=r"^(method|training)(\.[a-z_]+)+$")]


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


class Plot(Slice):
    """A panel that shows the headline over the values of one swept setting."""

    setting: Setting
    label: str = Field(description="What stands on the axis, with its unit.")


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

    @model_validator(mode="after")
    def _plots_show_what_is_swept(self) -> "Experiment":
        swept = {setting for block in self.runs for setting in block.sweep}
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
        if self.headline is not None and self.headline not in headings:
            raise ValueError(f"headline {self.headline} is no heading; has {headings}")
        return self

    def headline_column(self) -> Column | MeanColumn:
        """The column that stands for the table in figures."""
        return next(column for column in self.columns if self.headline in (None, column.heading))
