"""What every figure of the study without training says of itself."""

from pydantic import Field

from workflow_scripts.config import Settings


class Drawing(Settings):
    """What every figure of the study says of itself."""

    title: str
    below: str = Field(description="Table of the page below which the figure is placed.")
