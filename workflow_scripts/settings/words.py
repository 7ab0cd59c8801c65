"""Section ``words``."""

from pydantic import Field

from workflow_scripts.config import Settings


class Words(Settings):
    """How word frequencies are analysed."""

    peak_window: int = Field(
        gt=0,
        description="Number of ranks on either side among which a peak of the change rate is the highest.",
    )
