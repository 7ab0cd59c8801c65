"""Options of reader wikitext."""

from typing import ClassVar

from pydantic import Field

from workflow_scripts.settings.readers import ReaderConfig


class Config(ReaderConfig):
    """Releases of Wikitext: paragraphs are split into sentences, headings are dropped, each paragraph is a document."""

    forms: ClassVar[tuple[str, ...]] = ("sentences",)

    unknown: str | None = Field(description="Replacement for <unk>; null leaves it as it is.")
    min_characters: int = Field(description="Shorter sentences are dropped; the extraction study uses 10.")
