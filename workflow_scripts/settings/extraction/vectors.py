"""How texts become vectors: representations of tokens, their weightings, post-processings of sentence vectors."""

from typing import Annotated, Literal

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.extraction.words import WordRepresentation as WordRepresentation
from workflow_scripts.settings.names import Refers
from workflow_scripts.settings.precision import Precision


class EncoderRepresentation(Settings):
    """Hidden states of an encoder, alone or mixed with their static averages."""

    kind: Literal["encoder"]
    template: Annotated[str, Refers("extraction.templates")] | None = Field(
        description="Name of a template; null for the sentence itself."
    )
    precision: Precision


class RandomRepresentation(Settings):
    """A random vector for every token."""

    kind: Literal["random"]
    width: int = Field(gt=0)
    sd: float = Field(gt=0, description="Standard deviation of every entry; the mean is 0.")
    draws: int = Field(gt=0, description="Tables to draw, with seeds seed, seed + 1, ...")
    seed: int = Field(ge=0)


Representation = Annotated[
    EncoderRepresentation | RandomRepresentation | WordRepresentation, Field(discriminator="kind")
]

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

FitOn = Literal["task", "wikitext"]


class Plain(Settings):
    """No post-processing, or length 1: neither is fitted."""

    kind: Literal["none", "normalise"]
    label: str = Field(description="Name in tables; empty for none.")
    fit: Literal["task"]


class Learnt(Settings):
    """Mean and spread, or mean and principal directions."""

    kind: Literal["zscore", "whiten"]
    label: str
    fit: FitOn


class Abtt(Settings):
    """All but the top principal directions."""

    kind: Literal["abtt"]
    label: str
    fit: FitOn
    directions: int = Field(ge=0, description="Principal directions to remove; the paper tried up to 100.")


class Quantile(Settings):
    """Quantiles of every feature."""

    kind: Literal["quantile_uniform"]
    label: str
    fit: FitOn
    quantiles: int = Field(
        ge=2, description="Points of each feature's distribution; fewer where N is smaller."
    )
    subsample: int = Field(
        gt=0, description="Most vectors to fit on; scikit-learn's default was 100,000 until 1.5, then 10,000."
    )
    seed: int = Field(ge=0, description="Seed of the subsample.")


Postprocessing = Annotated[Plain | Learnt | Abtt | Quantile, Field(discriminator="kind")]
