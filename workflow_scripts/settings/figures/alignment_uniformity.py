"""Settings of figure alignment_uniformity."""

from typing import Annotated

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.figures import Needs
from workflow_scripts.settings.names import Refers

NEEDS = Needs(
    inputs={
        "table": "<results>/tables/{experiment}.parquet",
        "scores": "<results>/scores/geometry/{suite}/{run}/seed{seed}.parquet",
    },
    config="report.alignment_uniformity",
    suite="report.alignment_uniformity.suite",
)


class Config(Settings):
    """Which measurement is drawn."""

    suite: Annotated[str, Refers("suites.geometry")] = Field(description="Suite of the kind geometry.")
    task: str = Field(description="Name of a measurement of that suite, with alignment and uniformity.")
