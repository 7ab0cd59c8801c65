"""Settings of training text: corpora, round trips through another language, word frequencies and exemplars."""

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
    """The text to translate, the engine, and the two languages."""

    corpus: Annotated[Name, Refers("corpora", ("sentences",))] = Field(
        description="Corpus of sentences to translate."
    )
    translator: Annotated[Name, Refers("translators")] = Field(
        description="Translator, a block of `translators`."
    )
    source: str = Field(
        pattern="^[A-Za-z-]{2,12}$", description="Language of the corpus, by the engine's code."
    )
    pivot_language: str = Field(
        pattern="^[A-Za-z-]{2,12}$",
        description="Language to translate into and back from, by the engine's code.",
    )
    max_sentences: FirstN


class Shape(Settings):
    """The form in which round trips become training text."""

    training_text: Literal["pairs", "corpus", "expanded"] = Field(
        description="pairs: each sentence with its round trip; corpus: round trips instead of the sentences; "
        "expanded: the sentences and, as further sentences, their round trips."
    )
    unchanged: Literal["keep", "drop"] = Field(
        description="What to do with round trips equal to their source."
    )


class RoundTrip(Translation, Shape):
    """The complete block ``round_trip`` of a corpus."""


class Limits(Settings):
    """Limits that decide whether a text counts as a translation."""

    shards: int = Field(gt=0, description="Number of jobs into which the translation of a corpus is split.")
    untranslated_share: float = Field(
        gt=0,
        le=1,
        description="A text counts as untranslated if at least this fraction of its words stays the same in one "
        "direction.",
    )
    shortened_ratio: float = Field(
        gt=0,
        lt=1,
        description="A round trip counts as shortened if its length in words is below this fraction of the "
        "sentence's, and as lengthened if the sentence's is below this fraction of its own.",
    )
    refused_share: float = Field(
        ge=0,
        lt=1,
        description="Maximum fraction of a shard's sentences without a usable translation in one direction.",
        json_schema_extra=OPERATIONAL,
    )


class TripComparison(Settings):
    """Settings of the comparison of round trips with their sentences."""

    encoder: EncoderName = Field(
        description="Encoder whose averaged last hidden states are compared; it must support the language of the "
        "corpus."
    )
    max_tokens: MaxTokens


class Thresholds(Settings):
    """Thresholds for the rejection of round trips."""

    minimum: float = Field(
        gt=-1,
        lt=1,
        description="Minimum cosine of a round trip with its sentence; below it, the round trip is rejected.",
    )
    rejected_share: float = Field(
        ge=0, lt=1, description="Maximum fraction of the compared round trips that may be rejected."
    )


class Similarity(TripComparison, Thresholds):
    """The complete block ``round_trip.similarity``."""


class RoundTrips(Limits):
    """The complete section ``round_trip``."""

    similarity: Similarity | None = Field(
        description="Comparison of round trips with their sentences; null: none, as in the papers."
    )


class Corpus(Settings):
    """A block of ``corpora`` with sentences of a dataset."""

    dataset: Annotated[str, Refers("datasets", ("sentences", "triples"))] = Field(
        description="Dataset of the form sentences or triples."
    )
    dev_sentences: int = Field(
        ge=0,
        description="Number of sentences to hold out, as whole documents from the end; 0 for none, and for "
        "triples.",
    )
    max_sentences: FirstN
    add_sentences_of: Pairs | None = Field(
        default=None,
        description="Dataset of pairs whose sentences are added, without their scores; omit for none.",
    )
    label: Substitution = None

    @property
    def labels(self) -> list[str]:
        """Return the labels of every number of a run on this corpus."""
        labels = [self.label] if self.label else []
        if self.add_sentences_of:
            labels.append(
                f"trained on the unlabelled sentences of {self.add_sentences_of} too: "
                "transductive where it is tested on"
            )
        return labels


class RoundTripCorpus(Settings):
    """A block of ``corpora`` made from another corpus by translating it into another language and back."""

    round_trip: RoundTrip
    label: Substitution


class Words(Settings):
    """Settings of the analysis of word frequencies."""

    peak_window: int = Field(
        gt=0,
        description="Number of ranks on either side over which a peak of the change rate must be the maximum.",
    )


class Pool(Settings):
    """Requirements that every pool of exemplars meets."""

    corpus: CorpusName = Field(description="Corpus whose words are counted.")
    encoder: EncoderName = Field(description="Encoder whose tokeniser counts tokens.")
    word_list_size: int = Field(
        gt=0,
        description='Number of most frequent words on the list, without "The" if "the" is more frequent.',
    )
    sentences: int = Field(gt=0, description="Number of sentences in the pool.")
    min_uses_per_word: int = Field(
        gt=0, description="Minimum number of occurrences of each listed word in the pool."
    )
    max_tokens: MaxTokens
    listed_share: float = Field(
        ge=0, le=1, description="Minimum fraction of a sentence's words that are on the list."
    )


class ExtractivePool(Pool):
    """Sentences of the corpus itself, as a substitute for those of a language model."""

    generator: Literal["extractive"]
    max_candidates: int = Field(gt=0, description="Choose from the first N sentences that qualify.")


class LlmPool(Pool):
    """Sentences that a language model writes."""

    generator: Literal["llm"]
    llm: LlmName = Field(description="Language model, a block of `llms`.")
    prompt: Annotated[Name, Refers("resources.prompts")] = Field(
        description="Prompt: a file in resources/prompts, without suffix."
    )
    words_per_call: int = Field(
        gt=0, description="Number of listed words, drawn at random, that one request offers."
    )
    sentences_per_call: int = Field(gt=0, description="Number of sentences to request at a time.")
    max_calls: int = Field(gt=0, description="Maximum number of requests.")
    seed: int = Field(ge=0, description="Seed for drawing the words of each request.")
    label: Substitution
