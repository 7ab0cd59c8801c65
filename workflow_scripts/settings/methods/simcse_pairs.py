"""Settings of SimCSE on pairs."""

from typing import ClassVar, Literal

from workflow_scripts.settings.contrastive import Contrastive


class Config(Contrastive):
    """Settings of SimCSE on pairs."""

    columns: ClassVar[tuple[str, ...]] = ("anchor", "positive")

    module: Literal["simcse_pairs"]
