"""Weightings of tokens."""

from typing import Annotated, Literal

from pydantic import Field

from workflow_scripts.config import Settings

Bias = Literal["frequent", "subword", "punctuation", "special"]


class Uniform(Settings):
    """The plain average."""

    kind: Literal["uniform"]
    label: str = Field(description="Name in tables.")
    specials: bool = Field(description="Whether [CLS] and [SEP] are averaged over.")
    masks: bool = Field(description="Whether a template's [MASK] is averaged over.")


class Idf(Settings):
    """Inverse document frequency."""

    kind: Literal["idf"]
    label: str
    documents: Literal["wikitext", "task", "subset"] = Field(description="Where documents are counted.")
    text: Literal["raw", "templated"] = Field(
        description="Whether a task's documents are its texts, or the texts inside the template."
    )
    formula: Literal["documents", "tokens"]
    unseen: Literal["max", "zero"]
    repeated: Literal["once", "each"] = Field(
        description="Documents that a repeated text of a task is; Wikitext's sentences are one each."
    )


class Unbiased(Settings):
    """The plain average without biased tokens: frequent ones, subwords, punctuation, special tokens."""

    kind: Literal["unbiased"]
    label: str
    drop: list[Bias]


class Masks(Settings):
    """The average of a template's [MASK] tokens."""

    kind: Literal["masks"]
    label: str


Weighting = Annotated[Uniform | Idf | Unbiased | Masks, Field(discriminator="kind")]
