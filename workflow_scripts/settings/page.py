"""What the page shows."""

from pydantic import Field

from workflow_scripts.config import Settings


class Config(Settings):
    """What the page shows."""

    top_words: int = Field(ge=0, description="Number of most frequent words of each corpus to print.")
    shows: str | None = Field(description="What the study can show, for readers; null prints nothing.")
    cannot_show: str | None = Field(description="What it cannot show; null prints nothing.")
