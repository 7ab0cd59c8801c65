"""S2Sent: nested selection of an encoder's last blocks and of frequencies over them.

Zang et al. 2025, https://arxiv.org/abs/2508.18164; the computation is in ``models.portable.s2sent``. Text and
official code disagree in nine places; each is a setting, and ``readings`` in config/methods.yaml name the
combinations. Defaults follow the text, but divide the frequency squeeze by N L: then one frequency is the
average that Equation 6 says it is, and a gate does not depend on how long a sentence is. Neither reading
of the text lets an embedding depend on its batch; the code's ``dct: grid`` and ``gate: batch`` do, and what is
made with them carries a label.

Frequencies of the block axis that N blocks cannot carry (a >= N: 3 and 4 of the three blocks and sixteen
frequencies of Figure 6) are taken on six cells, into which the code pools any number of blocks. ASSUME: a
repeated block is meant to have no frequency that it lacks; in Equation 10 as printed, a = 2 of a single block
is minus its average. With three blocks this makes a = 4 half of what Equation 10 has, which is minus a = 2, and
a = 3 is nothing in both. ``dct: printed`` is Equation 10 over N L, ``sum`` Equation 10 itself; below a = N all
three are the same up to N L.

Equation 4 with one branch is the identity: a softmax over one number is 1. The paper's rows "S2Sent (1D SS)"
cannot come from it; ``form: average`` runs them as a control, and ``gate: batch`` as the code does.
"""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field
from transformers import PretrainedConfig

from workflow_scripts.errors import ConfigError
from workflow_scripts.models.portable.s2sent import Core
from workflow_scripts.models.readouts import PortableReadout, ReadoutConfig, draw_linear_layers


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
    def reads_padding(self) -> bool:
        """Whether it pools or sums over padding too, as the code does, and this reaches the vector."""
        if self.squeeze == "none":
            return self.gate == "batch"
        return self.squeeze == "dct" and self.dct == "grid" and not self.is_identity

    @property
    def is_identity(self) -> bool:
        """Whether there is one branch only, whose weight a softmax makes 1."""
        return self.gate == "softmax" and (self.form == "average" or self.blocks == 1)

    @property
    def labels(self) -> Sequence[str]:
        """That vectors depend on their batch, or that the selector does nothing."""
        found = []
        if self.gate == "batch" or (self.squeeze == "dct" and self.dct == "grid"):
            found.append(
                "S2Sent as its code computes it: a vector depends on the other sentences of its batch"
            )
        if self.is_identity:
            found.append("S2Sent with one branch is the identity (Equation 4): a control")
        return found


class S2Sent(PortableReadout):
    """The readout and its portable form."""

    def portable_class(self) -> Any:
        """Its module of sentence-transformers."""
        from workflow_scripts.models.portable import s2sent_module

        return s2sent_module.S2Sent


def build(config: Config, backbone_config: PretrainedConfig) -> PortableReadout:
    """Make the selector, its weights drawn afresh as in the official code (``draw_linear_layers``).

    Raises:
        ConfigError: if the encoder has too few blocks, or its width cannot be divided.
    """
    width, depth = backbone_config.hidden_size, backbone_config.num_hidden_layers
    # The embedding output is one more hidden state, which the code reaches where it leaves out the last block.
    if config.blocks > depth:
        raise ConfigError(f"readout.blocks {config.blocks}: the encoder has {depth}. Lower it.")
    if config.squeeze == "dct" and width % config.frequencies:
        raise ConfigError(
            f"readout.frequencies {config.frequencies}: no divisor of the encoder's width {width}. Choose another."
        )
    if config.reduction > width:
        raise ConfigError(f"readout.reduction {config.reduction}: the encoder's width is {width}. Lower it.")
    if config.squeeze == "none" and config.batch_norm:
        raise ConfigError("readout.batch_norm: not defined without a squeeze. Set it to false.")
    settings = {"width": width} | config.model_dump(exclude={"kind"})
    core = Core(**settings)
    draw_linear_layers(core)
    readout = S2Sent(core, settings, reads="padded" if config.reads_padding else "all")
    readout.reads_rows_apart = not config.batch_norm and config.gate != "batch"
    return readout
