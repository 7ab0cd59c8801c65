"""Suites of cost."""

from pydantic import Field

from workflow_scripts.config import Settings


class Config(Settings):
    """Lengths, batches and repeats."""

    tokens: int = Field(gt=0, description="Tokens per sentence T, for counting and for timing; no padding.")
    batch_sizes: list[int] = Field(min_length=1, description="Batch sizes that are timed.")
    repeats: int = Field(gt=0, description="Timed passes of each encoder per batch size; the median counts.")
    warmup: int = Field(ge=0, description="Passes before the first timed one.")
