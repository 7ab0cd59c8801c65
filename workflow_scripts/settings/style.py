"""What all figures share."""

from pydantic import Field

from workflow_scripts.config import Settings


class FigureStyle(Settings):
    """What all figures share."""

    width_inches: float = Field(
        gt=2, le=20, description="Width of a figure; 7.3 inches are 700 pixels of a page."
    )
