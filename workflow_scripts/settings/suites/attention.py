"""Suites of attention."""

from pydantic import Field

from workflow_scripts.config import Settings


class Energy(Settings):
    """The sentences over which E_CLS is averaged."""

    dataset: str = Field(description="Dataset of the form sentences or pairs.")
    max_sentences: int = Field(gt=0, description="Use the first so many sentences.")
    max_tokens: int = Field(gt=2, description="Longer sentences are truncated; [CLS] and [SEP] count.")
    batch_size: int = Field(gt=0, description="Sentences per forward pass; does not change the result.")


class Maps(Settings):
    """The sentences and layers whose attention is drawn."""

    sentences: list[str] = Field(min_length=1, description="Drawn one by one, so nothing is padded.")
    layers: list[int] = Field(min_length=1, description="Counted from 1.")
    max_tokens: int = Field(gt=2, description="Longer sentences are cut; [CLS] and [SEP] count.")


class Config(Settings):
    """What is measured and drawn for one encoder."""

    energy: Energy
    maps: Maps
