"""Options of reader labelled_tsv."""

from typing import ClassVar

from pydantic import Field

from workflow_scripts.settings.readers import PARTS, ReaderConfig


class Config(ReaderConfig):
    """Labelled texts in tab-separated columns with a header and no quoting."""

    forms: ClassVar[tuple[str, ...]] = ("labelled",)
    roles: ClassVar[tuple[str, ...]] = PARTS
    all_roles: ClassVar[bool] = False

    label: str = Field(description="Column of the label.")
    text1: str = Field(description="Column of the text, or of a pair's first text.")
    text2: str | None = Field(default=None, description="Column of a pair's second text.")
    split: str | None = Field(
        default=None, description="Column with the split of a row; if None, the part is the split."
    )
