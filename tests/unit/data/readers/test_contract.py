"""Every reader of the folder keeps ``data.readers.base``."""

import importlib
import inspect
from pathlib import Path

import pytest

from workflow_scripts.data import readers
from workflow_scripts.data.readers.base import Rows
from workflow_scripts.settings.readers import ReaderConfig

NAMES = sorted(path.stem for path in Path(readers.__file__).parent.glob("[a-z]*.py") if path.stem != "base")


@pytest.mark.parametrize("name", NAMES)
def test_every_reader_keeps_the_contract(name):
    module = importlib.import_module(f"workflow_scripts.data.readers.{name}")
    assert len(inspect.signature(module.read).parameters) == 2
    assert issubclass(module.Config, ReaderConfig) and module.Config.forms
    assert inspect.signature(module.read).return_annotation is Rows


def test_there_are_readers():
    assert {"lee", "wikitext"} <= set(NAMES)
