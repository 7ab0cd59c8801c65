"""Blocks of ``exemplars``."""

from typing import Literal

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.names import CorpusName, EncoderName, LlmName


class Pool(Settings):
    """What every pool must contain."""

    corpus: CorpusName = Field(description="Corpus whose words are counted.")
    encoder: EncoderName = Field(description="Encoder whose tokeniser counts tokens.")
    list_words: int = Field(gt=0, description="Number of most frequent words on the list.")
    drop_capitalised: bool = Field(description='Drop "The" from the list if "the" is more frequent.')
    sentences: int = Field(gt=0, description="Number of sentences in the pool.")
    uses: int = Field(gt=0, description="Least number of times that each listed word is used in the pool.")
    max_tokens: int = Field(gt=2, description="Longest sentence in tokens, including special ones.")
    listed_share: float = Field(
        ge=0, le=1, description="Smallest fraction of a sentence's words that are on the list."
    )


class ExtractivePool(Pool):
    """Sentences of the corpus itself, a substitute where there is no language model."""

    generator: Literal["extractive"]
    max_candidates: int = Field(gt=0, description="Choose from the first so many sentences that qualify.")


class LlmPool(Pool):
    """Sentences that a language model writes."""

    generator: Literal["llm"]
    llm: LlmName = Field(description="Block of llms.")
    prompt: str = Field(pattern="^[a-z0-9_]+$", description="File in resources/prompts, without suffix.")
    words_per_call: int = Field(
        gt=0, description="Number of listed words, drawn at random, that one call may use."
    )
    sentences_per_call: int = Field(gt=0, description="Sentences to ask for in one call.")
    max_calls: int = Field(gt=0, description="Give up after so many calls.")
    seed: int = Field(ge=0, description="Seed for drawing the words of each call.")
    label: str | None = Field(
        description="Substitution to print, where the model is not the paper's; null: none."
    )
