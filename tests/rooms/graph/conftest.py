import pytest

from tests.support.snakemake_plans import DEMO, ROOT, merged_config
from workflow_scripts.graph.checks import open_study


@pytest.fixture
def no_variables(monkeypatch):
    """The environment without the variables that stand for settings."""
    for name in ("SEMBLANCE_DATA", "SEMBLANCE_OFFLINE", "SEMBLANCE_ANSWERS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def study(no_variables):
    """The demo's study."""
    return open_study(merged_config(DEMO), ROOT)
