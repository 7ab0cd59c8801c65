"""Settings of InforMin-CL."""

from typing import Literal

from pydantic import Field

from workflow_scripts.settings.contrastive import Contrastive


class Config(Contrastive):
    """Settings of InforMin-CL."""

    module: Literal["informin_cl"]
    reconstruction_weight: float = Field(ge=0, description="w; 0 is SimCSE.")
