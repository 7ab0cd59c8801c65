"""Settings of training text: corpora, round trips through another language, words and exemplars."""

from typing import Annotated, Literal

from pydantic import Field

from workflow_scripts.settings.base import OPERATIONAL, Settings
from workflow_scripts.settings.names import (
    CorpusName,
    EncoderName,
    FirstN,
    LlmName,
    MaxTokens,
    Name,
    Pairs,
    Refers,
    Substitution,
)


class Translation(Settings):
    """Text to translate, the engine, and the language in between."""

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
    max_sentences: FirstN


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


class Comparison(Settings):
    """How round trips are compared with their sentences."""

    encoder: EncoderName = Field(
        description="Encoder of the comparison, which must know the language of the corpus; its last hidden states are "
        "averaged."
    )
    max_tokens: MaxTokens


class Thresholds(Settings):
    """When a round trip is rejected."""

    minimum: float = Field(
        gt=-1, lt=1, description="A round trip is rejected if its cosine with its sentence is smaller."
    )
    rejected_share: float = Field(
        ge=0, lt=1, description="Maximum fraction of the compared round trips that may be rejected."
    )


class Similarity(Comparison, Thresholds):
    """The whole block ``round_trip.similarity``."""


class RoundTrips(Limits):
    """The whole block ``round_trip``."""

    similarity: Similarity | None = Field(
        description="Comparison of round trips with their sentences; null: none, as in the papers."
    )


class Corpus(Settings):
    """A block of ``corpora`` that is taken from a dataset."""

    dataset: Annotated[str, Refers("datasets", ("sentences", "triples"))] = Field(
        description="Dataset of the form sentences or triples."
    )
    dev_sentences: int = Field(
        ge=0,
        description="Sentences to hold out, as whole documents from the end; 0 for none, and for triples.",
    )
    max_sentences: FirstN
    also: Pairs | None = Field(
        default=None,
        description="Dataset of pairs whose sentences are added, without their scores; omit for none.",
    )
    label: Substitution = None

    @property
    def labels(self) -> list[str]:
        """Labels for every number of a run on this corpus."""
        labels = [self.label] if self.label else []
        if self.also:
            labels.append(
                f"trained on the unlabelled sentences of {self.also} too: transductive where it is tested on"
            )
        return labels


class RoundTripCorpus(Settings):
    """A block of ``corpora`` made from another corpus by translating it into another language and back."""

    round_trip: RoundTrip
    label: Substitution


class Words(Settings):
    """How word frequencies are analysed."""

    peak_window: int = Field(
        gt=0,
        description="Number of ranks on either side among which a peak of the change rate is the highest.",
    )


class Pool(Settings):
    """Requirements of every pool."""

    corpus: CorpusName = Field(description="Corpus whose words are counted.")
    encoder: EncoderName = Field(description="Encoder whose tokeniser counts tokens.")
    list_words: int = Field(
        gt=0,
        description='Number of most frequent words on the list, without "The" if "the" is more frequent.',
    )
    sentences: int = Field(gt=0, description="Number of sentences in the pool.")
    uses: int = Field(gt=0, description="Least number of times that each listed word is used in the pool.")
    max_tokens: MaxTokens
    listed_share: float = Field(
        ge=0, le=1, description="Smallest fraction of a sentence's words that are on the list."
    )


class ExtractivePool(Pool):
    """Sentences of the corpus itself, a substitute where there is no language model."""

    generator: Literal["extractive"]
    max_candidates: int = Field(gt=0, description="Choose from the first N sentences that qualify.")


class LlmPool(Pool):
    """Sentences that a language model writes."""

    generator: Literal["llm"]
    llm: LlmName = Field(description="Block of llms.")
    prompt: Annotated[Name, Refers("resources.prompts")] = Field(
        description="File in resources/prompts, without suffix."
    )
    words_per_call: int = Field(
        gt=0, description="Number of listed words, drawn at random, that one call may use."
    )
    sentences_per_call: int = Field(gt=0, description="Sentences to ask for in one call.")
    max_calls: int = Field(gt=0, description="Stop after N calls.")
    seed: int = Field(ge=0, description="Seed for drawing the words of each call.")
    label: Substitution
