"""Settings of figure attention_maps."""

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.figures import Needs

NEEDS = Needs(
    inputs={"maps": "<results>/scores/attention/{suite}/{run}/seed{seed}.maps.parquet"},
    config="report.attention_maps",
)


class Config(Settings):
    """What is drawn."""

    layers: list[int] = Field(min_length=1, max_length=6, description="Layers, from 1; those that a run has.")
