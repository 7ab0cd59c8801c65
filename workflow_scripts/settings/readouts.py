"""Settings of readouts, a class for each kind, and descriptions of the encoders that they must fit."""

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field

from workflow_scripts.errors import ErrorDetails
from workflow_scripts.settings.base import Settings

BUILT_AS_BERT = ("bert", "roberta", "xlm-roberta", "camembert")
"""Model types whose layers support cross-attention to another encoder's."""


class Size(NamedTuple):
    """Known facts about an encoder's architecture."""

    layers: int
    width: int
    positions: int | None = None
    """Maximum length of a sentence in tokens; None if it has no limit or the limit is unknown."""
    kind: str | None = None
    """Model type in Transformers; None if unknown."""


class StartingPoint(NamedTuple):
    """The encoder, or the member runs, from which a run starts."""

    encoder: str = "the encoder"
    """Name of the encoder, for messages."""
    sizes: Sequence[Size] = ()
    """Known sizes of the encoder, or of its member runs' encoders."""
    members: int | None = None
    """Number of member runs; None for a fetched or adapted encoder."""
    frozen: Sequence[str] = ()
    """Names of the untrained member runs."""
    pool_sentences: int | None = None
    """Number of sentences in the method's pool of exemplars; None if it has none."""

    @property
    def depths(self) -> list[int]:
        """Return the distinct known numbers of layers, ascending."""
        return sorted({size.layers for size in self.sizes})


class RunOrigin(NamedTuple):
    """Encoder, corpus and teacher of a run, as configured."""

    encoder: str
    """Name of the encoder."""
    members: Sequence[str]
    """Names of its member runs; empty for a fetched or adapted encoder."""
    alike: bool
    """Whether the member runs have equal settings, and hence equal models."""
    corpus: str | None
    columns: Sequence[str]
    """Columns of the corpus that a method can read."""
    teacher: str | None

    @property
    def in_words(self) -> str:
        """Return the number of member runs in words."""
        number = len(self.members)
        return f"{number or 'no'} run{'' if number == 1 else 's'}"


def layers_outside(layers: Sequence[int], path: str, start: StartingPoint) -> Iterator[ErrorDetails]:
    """Yield an error if an encoder lacks one of some hidden states."""
    if start.depths:
        depth = start.depths[0]
        if outside := [layer for layer in layers if not -depth - 1 <= layer <= depth]:
            yield ErrorDetails(
                path,
                f"{outside[0]}; {start.encoder} has hidden states 0 to {depth}",
                f"Choose from: {-depth - 1} to {depth}.",
            )


def too_long(block: Settings, start: StartingPoint, path: str = "") -> Iterator[ErrorDetails]:
    """Yield an error for each length in tokens, anywhere in a block, that exceeds an encoder's limit."""
    known = [size.positions for size in start.sizes if size.positions]
    for key, value in block.parts().items():
        key_path = f"{path}.{key}" if path else key
        if isinstance(value, Settings):
            yield from too_long(value, start, key_path)
        elif known and key in ("max_tokens", "tokens") and value > min(known):
            most = min(known)
            yield ErrorDetails(
                key_path,
                f"{value}, but {start.encoder} accepts at most {most} tokens",
                f"Set it to {most} or less.",
            )


class ReadoutConfig(Settings):
    """Settings of a readout: every field but ``kind`` is a key of ``readout`` in a block of config/methods.yaml.

    ``kind`` is the name of its file in ``models/readouts``, as a ``Literal``. A model folder stores only these
    settings, so they and the encoder's configuration must suffice to recreate the readout.
    """

    kind: str

    @property
    def has_head(self) -> bool:
        """Return whether SimCSE's MLP head is trained on top of the vector."""
        return False

    @property
    def mask_setting(self) -> str | None:
        """Return the setting by which [MASK] is read, which requires a prompt; None if it is not read."""
        return None

    @property
    def is_independent(self) -> bool:
        """Return whether a vector, and its random draws in training, are independent of the rest of its batch."""
        return True

    @property
    def labels(self) -> Sequence[str]:
        """Return caveats for every number of this readout, such as that vectors depend on their batch."""
        return ()

    def size_errors(self, start: StartingPoint) -> Iterator[ErrorDetails]:
        """Yield an error for each setting that does not fit the encoder; paths begin with ``readout.``."""
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
    """Settings of pooling, which averages or selects token states."""

    kind: Literal["pooling"]
    pooler: Pooler = Field(
        description="cls is followed by the method's MLP head or, if none is trained, by the encoder's own pooler; the "
        "others have no head."
    )
    layers: tuple[int, ...] | None = Field(
        min_length=1,
        description="Hidden states to average (0 is the embedding output); null for the pooler's own.",
    )

    @property
    def indices(self) -> tuple[int, ...]:
        """Return the hidden states that are averaged."""
        return self.layers if self.layers is not None else LAYERS[self.pooler]

    @property
    def has_head(self) -> bool:
        """Return whether a method trains an MLP on the pooled vector."""
        return self.pooler == "cls"

    @property
    def mode(self) -> Mode:
        """Return sentence-transformers' name of the pooling of tokens."""
        return _MODES.get(self.pooler, "mean")

    def size_errors(self, start: StartingPoint) -> Iterator[ErrorDetails]:
        """Return an error if the encoder lacks one of the hidden states."""
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
    """Settings of LayerAttPooler; all poolings of the paper have an MLP."""

    has_head: ClassVar[bool] = True

    kind: Literal["layer_attention"]
    pooling: Table2 = Field(description="Pooling, a row of the paper's Table 2.")
    weights: Literal["softmax", "ratio", "diagonal"] = Field(
        description="Weights of layers. softmax: as in the code; ratio: a score divided by the sum of its row; "
        "diagonal: Equation 1 as printed."
    )
    projection: Literal["linear", "rrelu", "rrelu_per_query"] = Field(
        description="Function after W_q, W_k and W_v; the code draws new slopes of keys and values for each "
        "query (rrelu_per_query)."
    )
    embeddings: bool = Field(description="Whether the embedding output counts as a layer, as in the code.")
    divisor: Literal["layers", "sqrt_width"] = Field(
        description="Divisor of the scores, which only softmax reads: the number of layers (the code), or the "
        "root of the width."
    )
    first_layer: Literal[0, 1] = Field(
        description="First state in averages over first and last; 0 is the embedding output, as in the code."
    )


class S2Sent(ReadoutConfig):
    """Settings of S2Sent's selector."""

    kind: Literal["s2sent"]
    blocks: int = Field(gt=0, description="Number n of fused blocks, counted from the last.")
    last_block: bool = Field(description="Whether the last block is among them; the code excludes it.")
    fusion: Literal["stack", "average"] = Field(
        description="stack: a branch for each block (2D SS); average: one branch for their average (1D SS)."
    )
    pooling: Literal["avg", "cls", "mask"] = Field(
        description="Tokens of the fused states that give the vector."
    )
    squeeze: Literal["none", "gap", "dct"] = Field(
        description="Squeeze of the tokens. none: the layers act on each token; gap: average; dct: frequency "
        "selection."
    )
    frequencies: Literal[1, 2, 4, 8, 16] = Field(
        description="Number m of basis functions; only dct reads it."
    )
    frequency_set: Literal["figure", "fcanet"] = Field(
        description="Order of the basis functions: as in figure 4, or as in the code (fcanet); the first five "
        "are the same."
    )
    dct: Literal["mean", "printed", "sum", "grid"] = Field(
        description="Transform. mean: over a sentence's own length, divided by N L, with block frequencies of N "
        "or more resampled; printed: not resampled; sum: not divided either; grid: as in the code."
    )
    reduction: int = Field(gt=0, description="Ratio r of the width to the bottleneck's width.")
    activation: Literal["relu", "tanh"] = Field(
        description="Activation in the bottleneck: the paper's (relu) or the code's (tanh)."
    )
    bias: bool = Field(description="Whether both layers have a bias, as in the code.")
    batch_norm: bool = Field(description="Whether BatchNorm precedes the sigmoid, as in the code.")
    gate: Literal["softmax", "batch", "linear"] = Field(
        description="Gate of the blocks. softmax: Equation 4; batch: the code's sum over the whole batch; "
        "linear: no adaptive weights."
    )

    @property
    def has_head(self) -> bool:
        """Return whether an MLP follows, as in the code: SimCSE's after [CLS], PromptBERT's after [MASK]."""
        return self.pooling != "avg"

    @property
    def is_identity(self) -> bool:
        """Return whether there is only one branch, whose softmax weight is 1."""
        return self.gate == "softmax" and (self.fusion == "average" or self.blocks == 1)

    @property
    def sums_batch(self) -> bool:
        """Return whether padding or other sentences change a vector, even at test time."""
        return self.gate == "batch" or (self.squeeze == "dct" and self.dct == "grid")

    @property
    def is_independent(self) -> bool:
        """Return whether neither BatchNorm nor a sum over the batch mixes sentences."""
        return not (self.batch_norm or self.sums_batch)

    @property
    def labels(self) -> Sequence[str]:
        """Return labels if vectors depend on their batch, or the selector is the identity."""
        labels = []
        if self.sums_batch:
            labels.append(
                "S2Sent as its code computes it: a vector depends on the other sentences of its batch"
            )
        if self.is_identity:
            labels.append("S2Sent with one branch is the identity (Equation 4): a control")
        return labels

    @property
    def mask_setting(self) -> str | None:
        """Return the setting by which [MASK] is read; None if it is not read."""
        return "pooling" if self.pooling == "mask" else None

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Refuse BatchNorm without a squeeze."""
        if self.squeeze == "none" and self.batch_norm:
            yield ErrorDetails(
                "batch_norm", "true, but BatchNorm is not defined for squeeze none", "Set it to false."
            )

    def size_errors(self, start: StartingPoint) -> Iterator[ErrorDetails]:
        """Yield an error if the encoder has too few layers, or a width that does not fit."""
        if start.depths and self.blocks > start.depths[0]:
            depth = start.depths[0]
            yield ErrorDetails(
                "readout.blocks",
                f"{self.blocks}; {start.encoder} has {depth} layers",
                f"Set it to {depth} or less.",
            )
        widths = sorted({size.width for size in start.sizes if size.width})
        if widths:
            width = widths[0]
            if self.reduction > width:
                yield ErrorDetails(
                    "readout.reduction",
                    f"{self.reduction}; {start.encoder} has a width of {width}",
                    f"Set it to {width} or less.",
                )
            if self.squeeze == "dct" and width % self.frequencies:
                yield ErrorDetails(
                    "readout.frequencies",
                    f"{self.frequencies}; the width of {start.encoder}, {width}, is no multiple of it",
                    f"Set it to {math.gcd(width, self.frequencies)}.",
                )


class MaskToken(ReadoutConfig):
    """Readout of [MASK], without settings: the method has the template. PromptBERT trains SimCSE's MLP on top."""

    has_head: ClassVar[bool] = True
    mask_setting: ClassVar[str] = "kind"

    kind: Literal["mask_token"]


class AsPublished(ReadoutConfig):
    """Settings of a published model folder, in addition to its own: the prompt."""

    kind: Literal["as_published"]
    prompt: str | None = Field(
        description="Name of a prompt in the folder; null for the folder's default, usually none."
    )


AnyReadout = Annotated[
    Pooling | LayerAttention | S2Sent | MaskToken | AsPublished, Field(discriminator="kind")
]
"""Settings of any readout."""
