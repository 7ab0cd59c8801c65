"""Every reader of the folder keeps ``data.readers.base``."""

import importlib
import inspect
from pathlib import Path

import pytest

from workflow_scripts.data import readers
from workflow_scripts.data.readers.base import Rows

NAMES = sorted(path.stem for path in Path(readers.__file__).parent.glob("[a-z]*.py") if path.stem != "base")


@pytest.mark.parametrize("name", NAMES)
def test_every_reader_keeps_the_contract(name):
    module = importlib.import_module(f"workflow_scripts.data.readers.{name}")
    files, *options = inspect.signature(module.read).parameters.values()
    assert files.name == "files"
    assert all(option.kind is option.KEYWORD_ONLY for option in options)
    assert inspect.signature(module.read).return_annotation is Rows


def test_there_are_readers():
    assert {"lee", "wikitext"} <= set(NAMES)
