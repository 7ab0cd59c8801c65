"""Settings of figure threshold_path."""

from workflow_scripts.config import Settings
from workflow_scripts.settings.figures import Needs

NEEDS = Needs(
    inputs={"metrics": "<results>/runs/{run}/seed{seed}/metrics.parquet"},
    method={"module": "three_r"},
)
Config = Settings  # it has none
