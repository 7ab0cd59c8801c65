"""Settings of S2Sent."""

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from workflow_scripts.settings.readouts import ReadoutConfig
from workflow_scripts.settings.start import Start, first_token_alone


class Config(ReadoutConfig):
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
        """That vectors depend on their batch, or that the selector does nothing."""
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
        """That of the tokens which are taken."""
        return "pooling" if self.pooling == "mask" else None

    def conflicts(self) -> Iterator[str]:
        """Without a squeeze there is nothing to normalise."""
        if self.squeeze == "none" and self.batch_norm:
            yield "batch_norm: true with squeeze none, where it is not defined. Set it to false."

    def misfits(self, start: Start) -> Iterator[str]:
        """The encoder has the blocks, its width can be divided, and its first token knows the others."""
        for depth in start.depths[:1]:
            if self.blocks > depth:
                yield f"readout.blocks: {self.blocks}; {start.encoder} has {depth} layers. Lower it."
        for width in start.widths[:1]:
            if self.squeeze == "dct" and width % self.frequencies:
                found = f"{self.frequencies} is no divisor of {start.encoder}'s width {width}"
                yield f"readout.frequencies: {found}. Choose another."
            if self.reduction > width:
                yield f"readout.reduction: {self.reduction}; {start.encoder} is {width} wide. Lower it."
        if self.pooling == "cls":
            yield from first_token_alone("readout.pooling", start)
