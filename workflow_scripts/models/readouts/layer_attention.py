"""LayerAttPooler: attention over all layers, and the fixed poolings of its Table 2.

Oh et al. 2022, https://arxiv.org/abs/2209.05972; the computation is in ``models.portable.layer_attention``.
Equation 1's indices contradict each other and a ratio of scores has no definite sign, so defaults follow the
official code: softmax over layers, the embedding output among them, scores divided by the number of
layers, projections without bias followed by RReLU. All nine poolings are followed by the MLP head, which is
kept at test (the code has no switch for that); ``head_at_test: false`` is a variant.
"""

from typing import Any, Literal

from pydantic import Field
from transformers import PretrainedConfig

from workflow_scripts.errors import ConfigError
from workflow_scripts.models.portable.layer_attention import Core
from workflow_scripts.models.readouts import PortableReadout, ReadoutConfig, draw_linear_layers

Pooling = Literal[
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


class Config(ReadoutConfig):
    """Settings of the pooler."""

    kind: Literal["layer_attention"]
    pooling: Pooling = Field(description="A row of Table 2.")
    weights: Literal["softmax", "ratio", "diagonal"] = Field(
        description="softmax: the code's; ratio: a score over the sum of its row; diagonal: Equation 1 as printed."
    )
    projection: Literal["linear", "rrelu", "rrelu_per_query"] = Field(
        description="What follows W_q, W_k and W_v; the code draws slopes of keys and values anew for each query."
    )
    embeddings: bool = Field(description="Whether the embedding output is a layer, as in the code.")
    divisor: Literal["layers", "sqrt_width", "none"] = Field(
        description="Of the scores: their number of layers (the code), the root of the width, or 1; softmax reads it."
    )
    first_state: Literal[0, 1] = Field(
        description="First hidden state of the averages over first and last; 0, the embedding output, in the code."
    )

    @property
    def has_head(self) -> bool:
        """All poolings of the paper have an MLP."""
        return True


class LayerAttention(PortableReadout):
    """The readout and its portable form."""

    def portable_class(self) -> Any:
        """Its module of sentence-transformers."""
        from workflow_scripts.models.portable import layer_attention_module

        return layer_attention_module.LayerAttention


def build(config: Config, backbone_config: PretrainedConfig) -> PortableReadout:
    """Make the pooler, its weights drawn afresh as in the official code (``draw_linear_layers``).

    Raises:
        ConfigError: if the encoder has no layers.
    """
    if not backbone_config.num_hidden_layers:
        raise ConfigError("readout: the encoder has no layers to attend to. Name another.")
    settings = {"width": backbone_config.hidden_size} | config.model_dump(exclude={"kind"})
    core = Core(**settings)
    draw_linear_layers(core)
    readout = LayerAttention(core, settings)
    readout.reads_rows_apart = config.projection == "linear"  # slopes are drawn for a whole batch
    return readout
