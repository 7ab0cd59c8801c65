"""Settings of figure mixing_map."""

from typing import Literal

from pydantic import Field

from workflow_scripts.settings.drawing import Drawing
from workflow_scripts.settings.figures import Needs
from workflow_scripts.settings.names import Measured, Represented, Weighted

NEEDS = Needs(
    inputs={"scores": "<results>/extraction/scores/{kind}/{representation}/{task}.parquet"},
    config="extraction.figures.{figure}",
)


class Config(Drawing):
    """Which maps."""

    kind: Literal["mixing_map"]
    measures: list[Measured] = Field(
        min_length=1, description="A map each; a measure of all tasks may be split."
    )
    split: bool = Field(description="Whether each task of a measure has a map of its own.")
    representation: Represented
    weighting: Weighted
    mixing_weights: list[float] = Field(min_length=2)
