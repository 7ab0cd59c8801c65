"""S2Sent as a module of sentence-transformers."""

from .readout_module import ReadoutModule
from .s2sent import Core


class S2Sent(ReadoutModule):
    """``s2sent.Core`` on the hidden states."""

    core_class = Core
