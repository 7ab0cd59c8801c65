"""Options of reader label_space_text."""

from typing import ClassVar

from pydantic import Field

from workflow_scripts.settings.readers import PARTS, ReaderConfig


class Config(ReaderConfig):
    """Lines of a label, a space and a text: SST-5, and TREC with labels such as ``NUM:date``."""

    forms: ClassVar[tuple[str, ...]] = ("labelled",)
    roles: ClassVar[tuple[str, ...]] = PARTS
    all_roles: ClassVar[bool] = False

    coarse: bool = Field(description="Keep only the part of a label before the colon.")
    remove: str = Field(
        default="", description="Characters to remove from every text, where parts are formatted differently."
    )
    otherwise: str | None = Field(default=None, description="The encoding of a file that is not UTF-8.")
