"""BERT-whitening: the linear map by hand and against scikit-learn, and the encoder that has it."""

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from tests.support import toys
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.methods.frozen import Config, build, whitened, whitening
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.provenance.artefacts import job_record, writing_model_folder
from workflow_scripts.settings.methods import Whitening

AVERAGE = {"kind": "pooling", "pooler": "avg_first_last", "layers": None}
SETTINGS = {"corpus": "nli", "max_sentences": None, "max_tokens": 16}
TEXTS = toys.sentences(80)


def test_two_features_by_hand():
    """(2, 0), (-2, 0), (0, 1), (0, -1) from the mean (5, 7): variances 8/3 and 2/3, so that each goes to sqrt(3/2)."""
    vectors = np.array([[7.0, 7], [3, 7], [5, 8], [5, 6]])
    w_DD, mean_D = whitening(vectors)
    assert mean_D.tolist() == [5, 7]
    np.testing.assert_allclose(np.abs((vectors - mean_D) @ w_DD).max(axis=1), np.sqrt(3 / 2))
    np.testing.assert_allclose(np.cov((vectors - mean_D) @ w_DD, rowvar=False), np.eye(2), atol=1e-12)


def test_a_direction_without_variance_is_left_out():
    vectors = np.random.default_rng(0).normal(size=(50, 3)) @ np.diag([2.0, 1, 0])
    w_DD, mean_D = whitening(vectors)
    assert np.isfinite(w_DD).all()
    np.testing.assert_allclose(
        np.cov((vectors - mean_D) @ w_DD, rowvar=False), np.diag([0, 1, 1]), atol=1e-12
    )


@pytest.fixture
def plain(tiny_bert):
    config = Config.parse({"module": "frozen", "readout": AVERAGE}, "methods")
    return build(config, load_tokenizer(tiny_bert), load_backbone(tiny_bert)).eval()


def cosines(vectors):
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit @ unit.T


def test_an_encoder_has_the_cosines_of_scikit_learns_whitening(plain, tmp_path):
    """An encoder has the cosines of scikit-learn's whitening after saving too."""
    vectors = plain.encode(TEXTS, 16)
    expected = PCA(whiten=True, svd_solver="full").fit(vectors[:60].astype(np.float64)).transform(vectors)
    whitening = whitened(plain, TEXTS[:60], Whitening.parse(SETTINGS, "whitening"))
    found = whitening.encode(TEXTS, 16)
    np.testing.assert_allclose(cosines(found), cosines(expected), atol=2e-3)
    assert np.abs(found).max() > 1  # no tanh
    record = job_record("build_frozen", settings={}, inputs={}, outputs=[])
    with writing_model_folder(tmp_path / "model", record) as place:
        whitening.save(place)
    loaded = load_encoder(tmp_path / "model")
    with torch.inference_mode():
        np.testing.assert_array_equal(loaded.encode(TEXTS, 16), found)


def test_tokens_beyond_the_longest_sentence_are_cut(plain):
    whole, cut = (
        whitened(plain, TEXTS[:60], Whitening.parse(SETTINGS | {"max_tokens": most}, "whitening"))
        for most in (16, 3)
    )
    assert not torch.equal(whole.head.dense.weight, cut.head.dense.weight)


def test_fewer_texts_than_entries_are_refused(plain):
    with pytest.raises(DataError, match="20 distinct sentences for vectors of 32 entries"):
        whitened(plain, TEXTS[:20], Whitening.parse(SETTINGS, "whitening"))


def test_vectors_of_a_head_are_not_whitened():
    for readout in (AVERAGE | {"pooler": "cls"}, {"kind": "as_published", "prompt": None}):
        with pytest.raises(ConfigError, match="whitening: it needs a readout without a head"):
            Config.parse({"module": "frozen", "readout": readout, "whitening": SETTINGS}, "methods")
