"""Settings of figure modulus_surface."""

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.figures import Needs

NEEDS = Needs(config="grids.{experiment}.modulus_surface")  # no run is read


class Config(Settings):
    """Which part of the modulus loss is drawn (JTCSE, Fig. 3)."""

    longest: float = Field(gt=1, description="Largest ratio k of the two moduli.")
    steps: int = Field(ge=8, le=200, description="Points along each axis.")
