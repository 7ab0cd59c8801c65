"""LayerAttPooler as a module of sentence-transformers."""

from .layer_attention import Core
from .readout_module import ReadoutModule


class LayerAttention(ReadoutModule):
    """``layer_attention.Core`` on the hidden states."""

    core_class = Core
