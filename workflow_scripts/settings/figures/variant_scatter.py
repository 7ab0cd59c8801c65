"""Settings of figure variant_scatter."""

from typing import Literal

from pydantic import Field

from workflow_scripts.settings.drawing import Drawing
from workflow_scripts.settings.extraction.cells import Variants
from workflow_scripts.settings.figures import Needs
from workflow_scripts.settings.names import Measured, ModelName

NEEDS = Needs(
    inputs={"scores": "<results>/extraction/scores/{kind}/{representation}/{task}.parquet"},
    config="extraction.figures.{figure}",
)


class Config(Drawing):
    """Which measures of which cells."""

    kind: Literal["variant_scatter"]
    x: Measured
    y: Measured
    models: list[ModelName] = Field(min_length=1)
    variants: list[Variants] = Field(min_length=1)
    y_scale: Literal["linear", "log"]
    note: str | None = Field(description="What readers should know of the measures.")
    correlation: bool = Field(description="Whether the legend says how x and y of a model correlate.")
