"""The encoder of a run, as far as it is known before anything is fetched."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

BUILT_AS_BERT = ("bert", "roberta", "xlm-roberta", "camembert")
"""Model types whose layers can attend across to another encoder's."""


class Size(NamedTuple):
    """Known facts about an encoder's architecture."""

    layers: int
    width: int
    positions: int | None = None
    """Longest sentence in tokens; None if there is no such limit, or it is unknown."""
    kind: str | None = None
    """Its model type in Transformers; None if unknown."""


class Start(NamedTuple):
    """The encoder, or the finished runs, from which a run starts."""

    encoder: str = "the encoder"
    """What it is called in messages."""
    sizes: Sequence[Size] = ()
    """Known sizes of the encoder, or of the encoders of the runs that it consists of."""
    members: int | None = None
    """Number of runs that the encoder consists of; None for one that is fetched or adapted."""
    frozen: Sequence[str] = ()
    """Those of its runs that are not trained."""
    pool_sentences: int | None = None
    """Sentences of the pool of exemplars that the method names, if it names one."""

    @property
    def depths(self) -> list[int]:
        """Distinct known depths."""
        return sorted({size.layers for size in self.sizes})


def layers_outside(layers: Sequence[int], place: str, start: Start) -> Iterator[str]:
    """A finding where an encoder lacks one of the hidden states that are named."""
    for depth in start.depths[:1]:
        if outside := [layer for layer in layers if not -depth - 1 <= layer <= depth]:
            yield f"{place}: {outside[0]}; {start.encoder} has hidden states 0 to {depth}. Name one of them."
