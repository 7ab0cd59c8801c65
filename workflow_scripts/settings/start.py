"""What a run starts from, as far as it is known before anything is fetched."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

BUILT_AS_BERT = ("bert", "roberta", "xlm-roberta", "camembert")
"""Model types whose layers can attend across to another encoder's."""
PACKED = (*BUILT_AS_BERT, "mpnet", "modernbert")
"""Model types of ``models.packed``, whose dropout is a function of a sentence and its number."""


class Published(NamedTuple):
    """What an encoder's folder has for sentence-transformers."""

    prompts: tuple[tuple[str, str], ...] = ()
    """Name and text."""
    default: str | None = None
    """Name of the prompt that is used where none is named."""
    unmet: tuple[str, ...] = ()
    """What it asks for and is not done here."""
    first_token: bool = False
    """Whether its pooling is the first token."""

    def misfits(self, prompt: str | None, encoder: str) -> Iterator[str]:
        """Why an encoder cannot be read as it was published, a line each."""
        for found in self.unmet:
            take = "Take the method frozen_avg or frozen_cls, or another encoder."
            yield f"readout.kind: as_published; {found}. {take}"
        names = [name for name, _ in self.prompts]
        if not self.unmet and prompt is None and self.default not in (None, *names):
            found = (
                f"the folder's default prompt is {self.default}; {encoder} has {', '.join(names) or 'none'}"
            )
            yield f"readout.prompt: null; {found}. Name one of them."
        if not self.unmet and prompt not in (None, *names):
            yield f"readout.prompt: {prompt}; {encoder} has {', '.join(names) or 'none'}. Name one of them, or null."


class Size(NamedTuple):
    """What is known of one encoder's architecture."""

    layers: int
    width: int
    positions: int | None = None
    """Longest sentence in tokens; None if there is no such limit, or it is unknown."""
    kind: str | None = None
    """Its model type in Transformers; None if unknown."""
    drops: bool | None = None
    """Whether it has dropout of its own in training; None if unknown."""
    causal: bool | None = None
    """Whether a token attends to those before it alone; None if unknown."""
    published: Published | None = None
    """None if unknown."""


class Start(NamedTuple):
    """What a run starts from."""

    encoder: str = "the encoder"
    """What it is called in messages."""
    sizes: Sequence[Size] = ()
    """Known sizes of the encoder, or of the encoders of the runs that it consists of."""
    members: int | None = None
    """Number of runs that the encoder consists of; None for one that is fetched or adapted."""
    frozen: Sequence[str] = ()
    """Those of its runs that are not trained."""
    teacher: str = "the teacher"
    teacher_sizes: Sequence[Size] = ()
    pool_sentences: int | None = None
    """Sentences of the pool of exemplars that the method names, if it names one."""

    @property
    def depths(self) -> list[int]:
        """Distinct known depths."""
        return sorted({size.layers for size in self.sizes})

    @property
    def widths(self) -> list[int]:
        """Distinct known widths."""
        return sorted({size.width for size in self.sizes})


def layers_outside(layers: Sequence[int], place: str, start: Start) -> Iterator[str]:
    """A finding where an encoder lacks one of the hidden states that are named."""
    for depth in start.depths[:1]:
        if outside := [layer for layer in layers if not -depth - 1 <= layer <= depth]:
            yield f"{place}: {outside[0]}; {start.encoder} has hidden states 0 to {depth}. Name one of them."


def first_token_alone(place: str, start: Start) -> Iterator[str]:
    """A finding where the first token attends to no other, so that all sentences have one vector."""
    if any(size.causal for size in start.sizes):
        found = f"the first token, which attends to no other, as {start.encoder} is a causal decoder"
        yield f"{place}: {found}. Take an average."


def last_token_of_encoder(place: str, start: Start) -> Iterator[str]:
    """A finding where all tokens attend to all others, so that the last one, often [SEP], sums up nothing."""
    if any(size.causal is False for size in start.sizes):
        found = f"the last token, which sums up a sentence in a causal decoder alone; {start.encoder} attends both ways"
        yield f"{place}: {found}. Take an average, or the first token."
