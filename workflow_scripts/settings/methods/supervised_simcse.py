"""Settings of supervised SimCSE."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from workflow_scripts.settings.contrastive import Contrastive


class Config(Contrastive):
    """Settings of supervised SimCSE."""

    columns: ClassVar[tuple[str, ...]] = ("anchor", "positive", "negative")

    module: Literal["supervised_simcse"]
    hard_negatives: bool = Field(description="Whether the corpus's column of negatives is read.")
    hard_negative_weight: float = Field(
        description="Added to the logit of a row's own hard negative: 0 in SimCSE, 1 in LayerAttPooler's code."
    )

    @property
    def read_columns(self) -> Sequence[str]:
        """Negatives are left out where none are hard."""
        return self.columns if self.hard_negatives else self.columns[:2]
