import pytest

from workflow_scripts.audit.plan import plan
from workflow_scripts.errors import ConfigError


def test_a_configuration_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match=rf"^{tmp_path}/nosuch\.yaml: no such file\. Check the path"):
        plan(tmp_path, ["nosuch.yaml"])
