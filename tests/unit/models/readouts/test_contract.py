"""Every readout of the folder keeps the contract of ``models.readouts``."""

import importlib
import inspect
from typing import get_args

import pytest

from workflow_scripts.config import names_in
from workflow_scripts.models.readouts import Readout
from workflow_scripts.settings.readouts import ReadoutConfig


@pytest.mark.parametrize("kind", names_in("workflow_scripts.settings.readouts"))
def test_every_readout_keeps_the_contract(kind):
    module = importlib.import_module(f"workflow_scripts.models.readouts.{kind}")
    assert issubclass(module.Config, ReadoutConfig)
    assert get_args(module.Config.model_fields["kind"].annotation) == (kind,)
    built = inspect.signature(module.build)
    assert list(built.parameters) == ["config", "backbone_config"]
    assert issubclass(built.return_annotation, Readout)
