"""PromptBERT's readout as a module of sentence-transformers."""

from .mask_token import Core
from .readout_module import ReadoutModule


class MaskToken(ReadoutModule):
    """``mask_token.Core`` on the hidden states."""

    core_class = Core
