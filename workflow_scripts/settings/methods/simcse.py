"""Settings of unsupervised SimCSE."""

from typing import Literal

from workflow_scripts.settings.contrastive import Contrastive


class Config(Contrastive):
    """Settings of unsupervised SimCSE."""

    module: Literal["simcse"]
