"""Tables that describe datasets."""

from typing import Literal

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.names import AnyDataset

DIGITS = {
    "N": 0, "C": 0, "L/S": 1, "vocabulary W": 0, "vocabulary B": 0, "tokens W": 1, "tokens B": 1,
    "alphabetic W, %": 0, "alphabetic B, %": 0,
}  # fmt: skip
"""Columns as the paper calls them, and their decimals; W is for words, B for the encoder's pieces."""


class Row(Settings):
    """One dataset, or one of its splits."""

    name: str = Field(description="As the paper prints it.")
    split: str = Field(description="Split, as the paper prints it; empty for the whole dataset.")
    dataset: AnyDataset = Field(
        description="Name of the dataset; if it has splits, the rows of `split` are used."
    )
    graded: bool = Field(description="Whether labels are grades, whose extremes are compared, or classes.")
    words: Literal["whitespace", "marks_apart"] = Field(description="What W counts as words.")


class Statistics(Settings):
    """One table."""

    title: str
    source: str
    rows: list[Row] = Field(min_length=1)
