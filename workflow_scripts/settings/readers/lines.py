"""Options of reader lines."""

from typing import ClassVar, Literal

from pydantic import Field

from workflow_scripts.settings.readers import ReaderConfig


class Config(ReaderConfig):
    """One sentence per line, plain text or gzip; every line is a document of its own."""

    forms: ClassVar[tuple[str, ...]] = ("sentences",)
    roles: ClassVar[tuple[str, ...]] = ("text",)

    cleaning: Literal["none", "sentences"] = Field(
        default="sentences",
        description="none keeps every line as it is; sentences normalises white space, and drops blank lines, "
        "repeated ones, and those that are too short or too long.",
    )
    min_words: int = Field(default=1, description="Shorter lines are dropped, where lines are cleaned.")
    max_words: int = Field(default=1000, description="Longer lines are dropped, where lines are cleaned.")
