"""Options of reader stsb_csv."""

from typing import ClassVar, Literal

from pydantic import Field

from workflow_scripts.settings.readers import PARTS, ReaderConfig


class Config(ReaderConfig):
    """The STS benchmark as comma-separated values with quotes and no header: sentence1, sentence2, score."""

    forms: ClassVar[tuple[str, ...]] = ("pairs", "labelled")
    roles: ClassVar[tuple[str, ...]] = PARTS
    all_roles: ClassVar[bool] = False

    form: Literal["pairs", "labelled"] = Field(
        description="pairs, or labelled for graded labels: the score as the label."
    )
