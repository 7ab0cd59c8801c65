"""Options of reader wikipedia_xml."""

from typing import ClassVar

from pydantic import Field

from workflow_scripts.settings.readers import ReaderConfig


class Config(ReaderConfig):
    """Sentences of a MediaWiki XML dump, without markup."""

    forms: ClassVar[tuple[str, ...]] = ("sentences",)
    roles: ClassVar[tuple[str, ...]] = ("dump",)

    min_words: int = Field(description="Shorter sentences are dropped.")
    max_words: int = Field(description="Longer sentences are dropped.")
