"""Settings of figure alignment_uniformity."""

from typing import Annotated

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.figures import Needs
from workflow_scripts.settings.names import Refers

NEEDS = Needs(
    inputs={
        "table": "<results>/tables/{experiment}.parquet",
        "scores": "<results>/scores/sts/{suite}/{run}/seed{seed}.parquet",
    },
    config="grids.{experiment}.alignment_uniformity",
    task="grids.{experiment}.alignment_uniformity.task",
)


class Config(Settings):
    """Which measurement is drawn."""

    task: Annotated[str, Refers("grid.positives")] = Field(
        description="One of the ``positives`` of the experiment's suites of scored pairs."
    )
