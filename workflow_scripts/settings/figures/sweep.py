"""Settings of figure sweep."""

from typing import Annotated

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.figures import Needs
from workflow_scripts.settings.names import Heading, Place, Refers

NEEDS = Needs(
    inputs={"table": "<results>/tables/{experiment}.parquet"},
    config="grids.{experiment}.sweep",
)


class Plot(Settings):
    """A panel that shows a column over the values of one setting, swept or said by ``at``."""

    setting: Annotated[Place, Refers("grid.swept")]
    label: str = Field(description="Label of the axis, with its unit.")
    heading: Heading | None = Field(
        default=None, description="Column that is shown; left out for the headline."
    )


class Config(Settings):
    """Which settings are drawn."""

    plots: list[Plot] = Field(min_length=1, description="Panels, one below the other.")
