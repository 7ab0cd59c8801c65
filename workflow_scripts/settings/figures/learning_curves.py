"""Settings of figure learning_curves."""

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.figures import Needs

NEEDS = Needs(
    inputs={"histories": "<results>/runs/{run}/seed{seed}/history.parquet"},
    trained=True,
    config="report.learning_curves",
)


class Config(Settings):
    """How curves are drawn."""

    loss_blocks: int = Field(gt=1, description="The loss is averaged over so many equal blocks of steps.")
