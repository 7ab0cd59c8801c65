"""Options of reader class_files."""

from typing import ClassVar, Literal

from pydantic import Field

from workflow_scripts.settings.readers import ReaderConfig


class Config(ReaderConfig):
    """One file per class, one text per line: MR, CR, SUBJ and MPQA as distributed with SentEval."""

    forms: ClassVar[tuple[str, ...]] = ("labelled",)

    escapes: Literal["keep", "decode"] = Field(description="What to do with the escapes of cat -v.")
