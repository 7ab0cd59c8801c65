"""Settings of figure scatter."""

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.figures import Needs
from workflow_scripts.settings.names import Heading

NEEDS = Needs(
    inputs={"table": "<results>/tables/{experiment}.parquet"},
    config="grids.{experiment}.scatter",
)


class Config(Settings):
    """Two columns against each other, a point per run."""

    x: Heading = Field(description="Heading of a column.")
    y: Heading = Field(description="Heading of a column.")
