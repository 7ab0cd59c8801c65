"""Every readout of the folder keeps the contract of ``models.readouts``."""

import importlib
import inspect
from typing import get_args

import pytest

from workflow_scripts.config import names_in
from workflow_scripts.models.readouts.base import ReadoutModule


@pytest.mark.parametrize("kind", names_in("workflow_scripts.settings.readouts"))
def test_every_readout_is_made_of_the_settings_of_its_name(kind):
    config = importlib.import_module(f"workflow_scripts.settings.readouts.{kind}").Config
    readout = importlib.import_module(f"workflow_scripts.models.readouts.{kind}").Readout
    assert issubclass(readout, ReadoutModule)
    assert get_args(config.model_fields["kind"].annotation) == (kind,)
    made_of = {*inspect.signature(readout).parameters}
    assert made_of == {"width", *config.model_fields} - {"kind"}
