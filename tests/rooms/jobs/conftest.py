"""A run's model, which jobs of evaluation read."""

import pytest

from tests.support import toys


@pytest.fixture(scope="module")
def model(tiny_bert, tmp_path_factory):
    """The record of a run's model."""
    folder = tmp_path_factory.mktemp("run") / "model"
    toys.save(folder, toys.encoder(tiny_bert))
    return folder / "record.json"
