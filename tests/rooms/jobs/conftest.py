"""A run's model, which jobs of evaluation read."""

import pytest

from tests.evaluations import made
from workflow_scripts.models.encoder import SentenceEncoder, load_backbone, load_tokenizer
from workflow_scripts.models.folders import save_encoder
from workflow_scripts.provenance.artefacts import writing_model_folder
from workflow_scripts.settings.readouts import pooling as pooling_readout


@pytest.fixture(scope="module")
def model(tiny_bert, tmp_path_factory):
    """The record of a run's model."""
    folder = tmp_path_factory.mktemp("run") / "model"
    encoder = SentenceEncoder(
        load_backbone(tiny_bert),
        pooling_readout.Config(kind="pooling", pooler="avg", layers=None),
        head=False,
        head_at_test=False,
    )
    with writing_model_folder(folder, made(folder)) as place:
        save_encoder(place, encoder, load_tokenizer(tiny_bert))
    return folder / "record.json"
