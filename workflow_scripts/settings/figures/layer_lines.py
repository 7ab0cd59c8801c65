"""Settings of figure layer_lines."""

from typing import Literal

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.drawing import Drawing
from workflow_scripts.settings.figures import Needs
from workflow_scripts.settings.names import Measured, Represented, Weighted

NEEDS = Needs(
    inputs={"scores": "<results>/extraction/scores/{kind}/{representation}/{task}.parquet"},
    config="extraction.figures.{figure}",
)


class Series(Settings):
    """One line."""

    panel: str = Field(description="Column of panels it is drawn in.")
    representation: Represented
    weighting: Weighted


class Config(Drawing):
    """Which lines of which measures."""

    kind: Literal["layer_lines"]
    measures: list[Measured] = Field(min_length=1, description="A row of panels each.")
    series: list[Series] = Field(min_length=1)
    sums: list[str] = Field(description="Sums of layers that end the horizontal axis.")
