"""Settings of round trips: what is translated there and back, and what is made of it."""

from typing import Annotated, Literal

from pydantic import Field

from workflow_scripts.config import OPERATIONAL, Settings
from workflow_scripts.settings.names import Name, Refers


class Translation(Settings):
    """What is translated, with which engine and through which language."""

    corpus: Annotated[Name, Refers("corpora", ("sentences",))] = Field(
        description="Corpus of sentences to start from."
    )
    translator: Annotated[Name, Refers("translators")] = Field(description="Block of translators.")
    source: str = Field(
        pattern="^[A-Za-z-]{2,12}$", description="Language of the corpus, as the engine writes it."
    )
    via: str = Field(
        pattern="^[A-Za-z-]{2,12}$", description="Language to translate through, as the engine writes it."
    )
    max_sentences: int | None = Field(gt=0, description="Use the first so many sentences; null for all.")


class Shape(Settings):
    """How round trips become training text."""

    form: Literal["pairs", "corpus", "expanded"] = Field(
        description="pairs: sentences with their round trips; corpus: round trips in place of the sentences; expanded: "
        "the sentences, and their round trips as more of them."
    )
    unchanged: Literal["keep", "drop"] = Field(
        description="What to do with round trips that end with the words that they began with."
    )


class RoundTrip(Translation, Shape):
    """The whole block ``round_trip`` of a corpus."""


class Limits(Settings):
    """Limits on what counts as a translation."""

    shards: int = Field(gt=0, description="Jobs that the translation of a corpus is split into.")
    untranslated_share: float = Field(
        gt=0,
        le=1,
        description="A text is untranslated if this fraction of its words is the same in one direction.",
    )
    shortened_ratio: float = Field(
        gt=0,
        lt=1,
        description="A round trip is shortened if its length in words falls below this ratio, or lengthened if the "
        "sentence's does.",
    )
    refused_share: float = Field(
        ge=0,
        lt=1,
        description="Largest fraction of a shard's sentences without a usable translation in one direction.",
        json_schema_extra=OPERATIONAL,
    )
