"""Settings of pooling."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from workflow_scripts.settings.readouts import ReadoutConfig
from workflow_scripts.settings.start import Start, first_token_alone, last_token_of_encoder, layers_outside

Pooler = Literal[
    "cls", "cls_before_pooler", "avg", "avg_top2", "avg_first_last", "weighted_avg", "last_token", "max"
]
Mode = Literal["cls", "mean", "weightedmean", "lasttoken", "max"]

LAYERS: dict[str, tuple[int, ...]] = {
    "cls": (-1,),
    "cls_before_pooler": (-1,),
    "avg": (-1,),
    "avg_top2": (-2, -1),
    "avg_first_last": (1, -1),
    "weighted_avg": (-1,),
    "last_token": (-1,),
    "max": (-1,),
}
_MODES: dict[str, Mode] = {
    "cls": "cls",
    "cls_before_pooler": "cls",
    "weighted_avg": "weightedmean",
    "last_token": "lasttoken",
    "max": "max",
}


class Config(ReadoutConfig):
    """How token states become a sentence vector."""

    kind: Literal["pooling"]
    pooler: Pooler = Field(
        description="cls is followed by the method's MLP head, or the encoder's own pooler where none is trained; "
        "the others have no head. weighted_avg weighs the n-th token n times; max is that of each feature."
    )
    layers: tuple[int, ...] | None = Field(
        min_length=1,
        description="Hidden states (0 is the embedding output) that are averaged; null for the pooler's own.",
    )

    @property
    def indices(self) -> tuple[int, ...]:
        """The hidden states that are averaged."""
        return self.layers if self.layers is not None else LAYERS[self.pooler]

    @property
    def has_head(self) -> bool:
        """Whether a method trains an MLP on the pooled vector."""
        return self.pooler == "cls"

    @property
    def reads_pooler(self) -> bool:
        """Whether an encoder that is not trained is read through the pooler that it has."""
        return self.pooler == "cls"

    @property
    def mode(self) -> Mode:
        """How tokens are pooled, in the words of sentence-transformers."""
        return _MODES.get(self.pooler, "mean")

    def misfits(self, start: Start) -> Iterator[str]:
        """The encoder has the layers, and the one token that is taken knows the others."""
        yield from layers_outside(self.indices, "readout.layers", start)
        if self.mode == "cls":
            yield from first_token_alone("readout.pooler", start)
        if self.mode == "lasttoken":
            yield from last_token_of_encoder("readout.pooler", start)
