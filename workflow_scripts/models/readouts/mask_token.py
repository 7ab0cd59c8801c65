"""PromptBERT's readout: the last state of [MASK] in a templated sentence (``models.portable.mask_token``)."""

from typing import Any, Literal

from transformers import PretrainedConfig

from workflow_scripts.models.portable.mask_token import Core
from workflow_scripts.models.readouts import PortableReadout, ReadoutConfig


class Config(ReadoutConfig):
    """No settings; the template is the method's."""

    kind: Literal["mask_token"]

    @property
    def has_head(self) -> bool:
        """PromptBERT trains with SimCSE's MLP on top."""
        return True


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
