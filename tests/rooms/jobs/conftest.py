"""A run's model, which jobs of evaluation read."""

import pytest

from tests import tiny


@pytest.fixture(scope="module")
def model(tiny_bert, tmp_path_factory):
    """The record of a run's model."""
    folder = tmp_path_factory.mktemp("run") / "model"
    tiny.save(folder, tiny.encoder(tiny_bert))
    return folder / "record.json"
