"""Settings of PromptBERT's readout."""

from typing import Literal

from workflow_scripts.settings.readouts import ReadoutConfig


class Config(ReadoutConfig):
    """No settings; the template is the method's."""

    kind: Literal["mask_token"]

    @property
    def has_head(self) -> bool:
        """PromptBERT trains with SimCSE's MLP on top."""
        return True

    @property
    def mask_setting(self) -> str:
        """It reads nothing else."""
        return "kind"
