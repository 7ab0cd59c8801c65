"""Model folders that an older version saved, one of each kind, load with the vectors that it computed."""

import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from workflow_scripts.models.loading import class_of

ARCHIVE = Path(__file__).parents[2] / "golden/model_folders.tar.xz"
KINDS = ["single", "layer_attention", "s2sent", "twin", "fusion", "published"]
"""A masked prompt with a head, two readouts with weights, sums with one and with two vocabularies, a folder as it was."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The folders, and vectors.json with the sentences and their vectors."""
    root = tmp_path_factory.mktemp("older")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(root, filter="data")
    return root


def test_every_kind_is_kept(folders):
    assert sorted(path.name for path in folders.iterdir() if path.is_dir()) == sorted(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_an_older_folder_gives_the_same_vectors(folders, kind):
    older = json.loads((folders / "vectors.json").read_text())
    expected = np.array(older["vectors"][kind], np.float32)
    encoder = class_of(folders / kind).load(folders / kind).eval()
    np.testing.assert_allclose(encoder.encode(older["texts"], older["max_tokens"]), expected, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_saving_it_again_leaves_its_vectors(folders, tmp_path, kind):
    older = json.loads((folders / "vectors.json").read_text())
    class_of(folders / kind).load(folders / kind).eval().save(tmp_path / "again")
    model = SentenceTransformer(str(tmp_path / "again"), device="cpu", trust_remote_code=True)
    model.max_seq_length = older["max_tokens"]
    found = model.encode(older["texts"])
    np.testing.assert_allclose(found, np.array(older["vectors"][kind], np.float32), atol=1e-5)
