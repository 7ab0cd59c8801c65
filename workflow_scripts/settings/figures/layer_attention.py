"""Settings of figure layer_attention."""

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.figures import Needs

NEEDS = Needs(
    inputs={"models": "<results>/runs/{run}/seed{seed}/model/record.json"},
    method={"readout.kind": "layer_attention", "readout.pooling": "*attention*"},
    config="report.layer_attention",
)


class Config(Settings):
    """Which sentences are drawn."""

    sentences: list[str] = Field(
        min_length=1, max_length=4, description="Each on its own, so nothing is padded."
    )
    max_tokens: int = Field(gt=2, description="Longer sentences are cut; [CLS] and [SEP] count.")
