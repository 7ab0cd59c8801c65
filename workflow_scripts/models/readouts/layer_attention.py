"""LayerAttPooler: attention over all layers, and the fixed poolings of its Table 2.

Oh et al. 2022, https://arxiv.org/abs/2209.05972; the computation is in ``models.portable.layer_attention``.
Equation 1's indices contradict each other and a ratio of scores has no definite sign, so defaults follow the
official code: softmax over layers, the embedding output among them, scores divided by the number of
layers, projections without bias followed by RReLU. All nine poolings are followed by the MLP head, which is
kept at test (the code has no switch for that); ``head_at_test: false`` is a variant.
"""

from typing import Any

from transformers import PretrainedConfig

from workflow_scripts.models.portable.layer_attention import Core
from workflow_scripts.models.readouts import PortableReadout, draw_linear_layers
from workflow_scripts.settings.readouts.layer_attention import Config


class LayerAttention(PortableReadout):
    """The readout and its portable form."""

    def portable_class(self) -> Any:
        """Its module of sentence-transformers."""
        from workflow_scripts.models.portable import layer_attention_module

        return layer_attention_module.LayerAttention


def build(config: Config, backbone_config: PretrainedConfig) -> PortableReadout:
    """Make the pooler, its weights drawn afresh as in the official code (``draw_linear_layers``)."""
    settings = {"width": backbone_config.hidden_size} | config.model_dump(exclude={"kind"})
    core = Core(**settings)
    draw_linear_layers(core)
    readout = LayerAttention(core, settings)
    readout.reads_rows_apart = config.projection == "linear"  # slopes are drawn for a whole batch
    return readout
