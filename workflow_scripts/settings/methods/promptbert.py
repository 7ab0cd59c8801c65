"""Settings of PromptBERT."""

from typing import Literal

from pydantic import Field

from workflow_scripts.settings.contrastive import Contrastive
from workflow_scripts.settings.templates import Template


class Config(Contrastive):
    """Settings of PromptBERT."""

    module: Literal["promptbert"]
    templates: tuple[Template, Template] = Field(description="One for each view while training.")
    test_template: Template = Field(
        description="At test; the code ends sentences in a full stop there alone."
    )
    denoise: bool = Field(description="Whether the templates' own vectors are subtracted while training.")
    cut: Literal["sentence", "with_specials"] = Field(
        description="What training.max_tokens counts: the sentence's own tokens, or [CLS] and [SEP] too."
    )
    bias_positions: Literal["own", "zero"] = Field(
        description="First position of a bare template: the encoder's own first, or 0."
    )
    chosen_by: Literal["denoised", "test"] = Field(
        description="How checkpoints are scored: as while training, or as at test."
    )

    @property
    def is_prompted(self) -> bool:
        """Sentences always are."""
        return True
