"""Blocks of ``corpora``."""

from typing import Annotated

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.names import Pairs, Refers
from workflow_scripts.settings.round_trips import RoundTrip


class Corpus(Settings):
    """A block of ``corpora`` that is taken from a dataset."""

    dataset: Annotated[str, Refers("datasets", ("sentences", "triples"))] = Field(
        description="Dataset of the form sentences or triples."
    )
    dev_sentences: int = Field(
        ge=0,
        description="Sentences to hold out, as whole documents from the end; 0 for none, and for triples.",
    )
    max_sentences: int | None = Field(gt=0, description="Train on the first so many rows; null for all.")
    also: Pairs | None = Field(
        default=None,
        description="Dataset of pairs whose sentences are added, without their scores; omit for none.",
    )
    label: str | None = Field(
        default=None, description="Substitution to print wherever this corpus is used; omit for none."
    )

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
    label: str | None = Field(
        description="Substitution to print, where engine or language are not those of the paper; null: none."
    )
