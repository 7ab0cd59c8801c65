"""Section ``contamination``."""

from pydantic import Field

from workflow_scripts.config import Settings


class Config(Settings):
    """What a contamination table shows."""

    examples: int = Field(ge=0, description="Shared texts to list for each task and kind of match.")
