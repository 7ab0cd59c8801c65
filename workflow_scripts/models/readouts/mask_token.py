"""PromptBERT's readout: the last state of [MASK] in a templated sentence (``models.portable.mask_token``)."""

from typing import Any

from transformers import PretrainedConfig

from workflow_scripts.models.portable.mask_token import Core
from workflow_scripts.models.readouts import PortableReadout
from workflow_scripts.settings.readouts.mask_token import Config


class MaskToken(PortableReadout):
    """The readout and its portable form."""

    def portable_class(self) -> Any:
        """Its module of sentence-transformers."""
        from workflow_scripts.models.portable import mask_token_module

        return mask_token_module.MaskToken


def build(config: Config, backbone_config: PretrainedConfig) -> PortableReadout:
    """Make the readout; ``set_mask_token`` tells it which token the mask is."""
    settings = {"width": backbone_config.hidden_size}
    return MaskToken(Core(**settings), settings, reads="last")
