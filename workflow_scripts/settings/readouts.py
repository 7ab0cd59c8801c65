"""Readouts: how token states become a sentence vector, a class a kind; and the encoder that they must fit."""

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field

from workflow_scripts.errors import Finding
from workflow_scripts.settings.base import Settings

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
    """Name of the encoder, for messages."""
    sizes: Sequence[Size] = ()
    """Known sizes of the encoder, or of the encoders of the runs that it consists of."""
    members: int | None = None
    """Number of runs that the encoder consists of; None for one that is fetched or adapted."""
    frozen: Sequence[str] = ()
    """Names of the untrained runs."""
    pool_sentences: int | None = None
    """Sentences of the pool of exemplars that the method names, if it names one."""

    @property
    def depths(self) -> list[int]:
        """Distinct known depths."""
        return sorted({size.layers for size in self.sizes})


class Origin(NamedTuple):
    """What the configuration says that a run is made from."""

    encoder: str
    """Name of the encoder."""
    members: Sequence[str]
    """Names of the runs that it consists of; none of one that is fetched or adapted."""
    alike: bool
    """Whether these differ in nothing that decides a model."""
    corpus: str | None
    columns: Sequence[str]
    """Columns of the corpus that a method can read."""
    teacher: str | None

    @property
    def in_words(self) -> str:
        """Return the number of runs in words."""
        number = len(self.members)
        return f"{number or 'no'} run{'' if number == 1 else 's'}"


def layers_outside(layers: Sequence[int], place: str, start: Start) -> Iterator[Finding]:
    """A finding where an encoder lacks one of the hidden states that are named."""
    for depth in start.depths[:1]:
        if outside := [layer for layer in layers if not -depth - 1 <= layer <= depth]:
            yield Finding(
                place, f"{outside[0]}; {start.encoder} has hidden states 0 to {depth}", "Name one of them."
            )


def too_long(block: Settings, start: Start, path: str = "") -> Iterator[Finding]:
    """Yield settings of a length in tokens, anywhere in a block, above what an encoder takes."""
    known = [size.positions for size in start.sizes if size.positions]
    for key, value in block.parts().items():
        place = f"{path}.{key}" if path else key
        if isinstance(value, Settings):
            yield from too_long(value, start, place)
        elif known and key in ("max_tokens", "tokens") and value > min(known):
            most = min(known)
            yield Finding(place, f"{value}; {start.encoder} takes {most}", f"Set it to {most} or less.")


class ReadoutConfig(Settings):
    """Settings of a readout: every field but ``kind`` is a key of ``readout`` in a block of config/methods.yaml.

    ``kind`` is the name of its file in ``models/readouts``, as a ``Literal``. The settings are all that a model folder
    keeps of them, so that they and the encoder's configuration must be enough to make the readout again.
    """

    kind: str

    @property
    def has_head(self) -> bool:
        """Whether SimCSE's MLP head is trained on its vector."""
        return False

    @property
    def mask_setting(self) -> str | None:
        """The setting by which it reads [MASK], for which sentences need a prompt; None if it does not."""
        return None

    @property
    def is_independent(self) -> bool:
        """Whether a vector, and what is drawn for it in training, does not depend on the others of its batch."""
        return True

    @property
    def labels(self) -> Sequence[str]:
        """Notes for readers of any number made with it, such as that vectors depend on their batch."""
        return ()

    def misfits(self, start: Start) -> Iterator[Finding]:
        """Requirements that an encoder does not meet, a line each that begins with ``readout.`` and the setting."""
        return iter(())


Pooler = Literal["cls", "cls_before_pooler", "avg", "avg_top2", "avg_first_last", "last_token"]
Mode = Literal["cls", "mean", "lasttoken"]

LAYERS: dict[str, tuple[int, ...]] = {
    "cls": (-1,),
    "cls_before_pooler": (-1,),
    "avg": (-1,),
    "avg_top2": (-2, -1),
    "avg_first_last": (1, -1),
    "last_token": (-1,),
}
_MODES: dict[str, Mode] = {
    "cls": "cls",
    "cls_before_pooler": "cls",
    "last_token": "lasttoken",
}


class Pooling(ReadoutConfig):
    """How token states become a sentence vector."""

    kind: Literal["pooling"]
    pooler: Pooler = Field(
        description="cls is followed by the method's MLP head, or the encoder's own pooler where none is trained; "
        "the others have no head."
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
    def mode(self) -> Mode:
        """How tokens are pooled, in the words of sentence-transformers."""
        return _MODES.get(self.pooler, "mean")

    def misfits(self, start: Start) -> Iterator[Finding]:
        """The encoder has the layers."""
        return layers_outside(self.indices, "readout.layers", start)


Table2 = Literal[
    "cls_last",
    "avg_last",
    "avg_first_last",
    "avg_last_and_avg_first_last",
    "cls_last_and_avg_last",
    "attention_cls",
    "attention_avg",
    "attention_cls_avg",
    "cls_last_and_attention_cls_avg",
]


class LayerAttention(ReadoutConfig):
    """Settings of the pooler; all poolings of the paper have an MLP."""

    has_head: ClassVar[bool] = True

    kind: Literal["layer_attention"]
    pooling: Table2 = Field(description="A row of Table 2.")
    weights: Literal["softmax", "ratio", "diagonal"] = Field(
        description="softmax: the code's; ratio: a score over the sum of its row; diagonal: Equation 1 as printed."
    )
    projection: Literal["linear", "rrelu", "rrelu_per_query"] = Field(
        description="What follows W_q, W_k and W_v; the code draws new slopes of keys and values for each query."
    )
    embeddings: bool = Field(description="Whether the embedding output is a layer, as in the code.")
    divisor: Literal["layers", "sqrt_width"] = Field(
        description="Of the scores: their number of layers (the code), or the root of the width; softmax reads it."
    )
    first_state: Literal[0, 1] = Field(
        description="First hidden state of the averages over first and last; 0, the embedding output, in the code."
    )


class S2Sent(ReadoutConfig):
    """Settings of the selector."""

    kind: Literal["s2sent"]
    blocks: int = Field(gt=0, description="Number n of blocks, counted from the last.")
    last_block: bool = Field(description="Whether the last block is one of them; the code leaves it out.")
    form: Literal["stack", "average"] = Field(
        description="stack: a branch for each block (2D SS); average: one branch for their average (1D SS)."
    )
    pooling: Literal["avg", "cls", "mask"] = Field(description="Tokens of the fused states that are taken.")
    squeeze: Literal["none", "gap", "dct"] = Field(
        description="none: layers act on each token; gap: average; dct: frequency selection."
    )
    frequencies: Literal[1, 2, 4, 8, 16] = Field(description="Number m of basis functions; dct reads it.")
    frequency_set: Literal["figure", "fcanet"] = Field(
        description="In the order of figure 4, or as the code lists them; the first five are the same."
    )
    dct: Literal["mean", "printed", "sum", "grid"] = Field(
        description="mean: over a sentence's own length, divided by N L, block frequencies of N or more resampled; "
        "printed: not resampled; sum: not divided either; grid: the code's."
    )
    reduction: int = Field(gt=0, description="Ratio r of the width to the bottleneck's.")
    activation: Literal["relu", "tanh"] = Field(description="In the bottleneck: the text's or the code's.")
    bias: bool = Field(description="Of both layers; the code has it.")
    batch_norm: bool = Field(description="Before the sigmoid; the code has it.")
    gate: Literal["softmax", "batch", "linear"] = Field(
        description="softmax: Equation 4; batch: the code's sum over the whole batch; linear: no adaptive weights."
    )

    @property
    def has_head(self) -> bool:
        """As in the code: [CLS] is followed by SimCSE's MLP, [MASK] by PromptBERT's, an average by none."""
        return self.pooling != "avg"

    @property
    def is_identity(self) -> bool:
        """Whether there is one branch only, whose weight a softmax makes 1."""
        return self.gate == "softmax" and (self.form == "average" or self.blocks == 1)

    @property
    def sums_batch(self) -> bool:
        """Whether padding or other sentences count, at test too."""
        return self.gate == "batch" or (self.squeeze == "dct" and self.dct == "grid")

    @property
    def is_independent(self) -> bool:
        """The code's BatchNorm normalises over a batch while training."""
        return not (self.batch_norm or self.sums_batch)

    @property
    def labels(self) -> Sequence[str]:
        """Labels if vectors depend on their batch, or the selector does nothing."""
        found = []
        if self.sums_batch:
            found.append(
                "S2Sent as its code computes it: a vector depends on the other sentences of its batch"
            )
        if self.is_identity:
            found.append("S2Sent with one branch is the identity (Equation 4): a control")
        return found

    @property
    def mask_setting(self) -> str | None:
        """The setting that makes this readout read [MASK], if it does."""
        return "pooling" if self.pooling == "mask" else None

    def conflicts(self) -> Iterator[Finding]:
        """Without a squeeze there is nothing to normalise."""
        if self.squeeze == "none" and self.batch_norm:
            yield Finding("batch_norm", "true with squeeze none, where it is not defined", "Set it to false.")

    def misfits(self, start: Start) -> Iterator[Finding]:
        """The encoder has the blocks, and its width can be reduced and divided among the frequencies."""
        for depth in start.depths[:1]:
            if self.blocks > depth:
                yield Finding(
                    "readout.blocks",
                    f"{self.blocks}; {start.encoder} has {depth} layers",
                    f"Set it to {depth} or less.",
                )
        for width in sorted({size.width for size in start.sizes if size.width})[:1]:
            if self.reduction > width:
                yield Finding(
                    "readout.reduction",
                    f"{self.reduction}; {start.encoder} has a width of {width}",
                    f"Set it to {width} or less.",
                )
            if self.squeeze == "dct" and width % self.frequencies:
                yield Finding(
                    "readout.frequencies",
                    f"{self.frequencies}; the width of {start.encoder}, {width}, is no multiple of it",
                    f"Set it to {math.gcd(width, self.frequencies)}.",
                )


class MaskToken(ReadoutConfig):
    """No settings; the template is the method's. PromptBERT trains with SimCSE's MLP on top."""

    has_head: ClassVar[bool] = True
    mask_setting: ClassVar[str] = "kind"

    kind: Literal["mask_token"]


class AsPublished(ReadoutConfig):
    """Settings of a published folder besides its own: which of its prompts."""

    kind: Literal["as_published"]
    prompt: str | None = Field(
        description="Name of a published prompt; null for the folder's default, which is mostly none."
    )


AnyReadout = Annotated[
    Pooling | LayerAttention | S2Sent | MaskToken | AsPublished, Field(discriminator="kind")
]
"""Settings of a readout of any kind."""
