import json

import numpy as np
import pytest
import torch
from transformers import AutoModel

from tests import tiny
from workflow_scripts.artefacts import job_record, writing_model_folder
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.methods import ensemble as method
from workflow_scripts.models.encoder import SentenceEncoder, load_backbone, load_tokenizer
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.ensemble import Ensemble
from workflow_scripts.models.loading import load_encoder, shared_tokenizer
from workflow_scripts.models.readouts import pooled
from workflow_scripts.models.saving import save_encoder

TEXTS = [*tiny.sentences(9, seed=4), "x", "The school by the river " * 4]
MAX_TOKENS = 12
CLS = pooled.Config(kind="pooled", pooler="cls_before_pooler", layers=None)
AVERAGE = pooled.Config(kind="pooled", pooler="avg", layers=None)


def tower(folder, scale=1.0, readout=CLS):
    backbone = load_backbone(folder)
    for parameter in backbone.encoder.layer[0].parameters():
        parameter.data *= scale
    return SentenceEncoder(backbone, readout, head=False, head_at_test=False)


def joined(towers, weights=None):
    return method.build(method.Config(module="ensemble", weights=weights), towers).eval()


def save(place, encoder, folder):
    record = job_record("join_encoders", settings={}, inputs={}, outputs=[place])
    with writing_model_folder(place, record) as inside:
        save_encoder(inside, encoder, load_tokenizer(folder), MAX_TOKENS)


def vectors_of(encoder, folder):
    return encode(encoder, load_tokenizer(folder), TEXTS, MAX_TOKENS)


def test_two_runs_are_added_up(tiny_bert):
    """O-47: the twin with no term at all; O-48."""
    towers = [tower(tiny_bert), tower(tiny_bert, 1.5)]
    parts = [vectors_of(one, tiny_bert) for one in towers]
    np.testing.assert_allclose(vectors_of(joined(towers), tiny_bert), parts[0] + parts[1], atol=1e-6)


@pytest.mark.parametrize(("w", "expected"), [(0.0, "twin"), (1.0, "published"), (0.7, "both")])
def test_a_fusion_with_a_published_encoder(tiny_bert, w, expected):
    """O-49: (1 - w)(h_I + h_II) + w h_InfoCSE."""
    twin = joined([tower(tiny_bert), tower(tiny_bert, 1.5)])
    published = tower(tiny_bert, 0.5)
    fused = vectors_of(joined([twin, published], (1 - w, w)), tiny_bert)
    parts = {"twin": vectors_of(twin, tiny_bert), "published": vectors_of(published, tiny_bert)}
    parts["both"] = (1 - w) * parts["twin"] + w * parts["published"]
    np.testing.assert_allclose(fused, parts[expected], atol=1e-6)


def test_six_encoders_are_counted_and_so_are_those_of_a_twin_within(tiny_bert):
    """EDFSE has six; a twin fused with a third has three."""
    assert len(joined([tower(tiny_bert) for _ in range(6)]).leaves) == 6
    twin = joined([tower(tiny_bert), tower(tiny_bert)])
    assert len(joined([twin, tower(tiny_bert)]).leaves) == 3


@pytest.mark.parametrize("bypassed", [0, 1])
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_a_saved_twin_gives_the_same_vectors_through_every_loader(tiny_models, tmp_path, kind, bypassed):
    from sentence_transformers import SentenceTransformer

    folder = tiny_models[kind]
    twin = Ensemble([tower(folder), tower(folder, 1.5)], (1.0, 1.0), bypassed).eval()
    expected = vectors_of(twin, folder)
    place = tmp_path / "model"
    save(place, twin, folder)
    loaded, tokenizer = load_encoder(place)
    np.testing.assert_allclose(encode(loaded, tokenizer, TEXTS, MAX_TOKENS), expected, atol=1e-6)
    theirs = SentenceTransformer(str(place), device="cpu", trust_remote_code=True, local_files_only=True)
    np.testing.assert_allclose(theirs.encode(TEXTS), expected, atol=1e-6)
    assert theirs.max_seq_length == MAX_TOKENS
    if bypassed:
        return
    towers = [SentenceTransformer(str(place / f"tower{n}"), device="cpu").encode(TEXTS) for n in (1, 2)]
    np.testing.assert_allclose(towers[0] + towers[1], expected, atol=1e-6)
    stock = [AutoModel.from_pretrained(place / f"tower{n}") for n in (1, 2)]
    batch = tokenizer(TEXTS, truncation=True, max_length=MAX_TOKENS, padding=True, return_tensors="pt")
    with torch.inference_mode():
        states = [
            m(input_ids=batch.input_ids, attention_mask=batch.attention_mask).last_hidden_state for m in stock
        ]
    np.testing.assert_allclose(sum(s[:, 0] for s in states).numpy(), expected, atol=1e-6)


def test_an_ensemble_within_an_ensemble_is_saved_and_loaded(tiny_bert, tmp_path):
    from sentence_transformers import SentenceTransformer

    twin = joined([tower(tiny_bert), tower(tiny_bert, 1.5)])
    fused = joined([twin, tower(tiny_bert, 0.5, AVERAGE)], (0.3, 0.7))
    expected = vectors_of(fused, tiny_bert)
    save(tmp_path / "model", fused, tiny_bert)
    loaded, tokenizer = load_encoder(tmp_path / "model")
    np.testing.assert_allclose(encode(loaded, tokenizer, TEXTS, MAX_TOKENS), expected, atol=1e-6)
    theirs = SentenceTransformer(str(tmp_path / "model"), device="cpu", trust_remote_code=True)
    np.testing.assert_allclose(theirs.encode(TEXTS), expected, atol=1e-6)


def test_a_folder_with_towers_runs_no_code_unless_it_is_trusted(tiny_bert, tmp_path):
    from sentence_transformers import SentenceTransformer

    save(tmp_path / "model", joined([tower(tiny_bert), tower(tiny_bert)]), tiny_bert)
    modules = json.loads((tmp_path / "model/modules.json").read_text())
    assert [module["type"] for module in modules] == ["semblance_tower_sum.TowerSum"]
    with pytest.raises(Exception, match=r"trust_remote_code|semblance_tower_sum"):
        SentenceTransformer(str(tmp_path / "model"), device="cpu", local_files_only=True)


def test_neither_place_nor_time_reach_the_bytes(tiny_bert, tmp_path):
    hashes = []
    for name in ("one", "a/much/deeper/two"):
        place = tmp_path / name / "model"
        place.parent.mkdir(parents=True)
        save(place, joined([tower(tiny_bert), tower(tiny_bert, 1.5)]), tiny_bert)
        files = sorted(path for path in place.rglob("*") if path.is_file() and path.name != "record.json")
        assert len(files) > 15
        assert not any("__pycache__" in path.parts for path in files)
        hashes.append({path.relative_to(place).as_posix(): path.read_bytes() for path in files})
    assert hashes[0] == hashes[1]


def test_a_damaged_tower_is_refused_before_it_is_loaded(tiny_bert, tmp_path):
    place = tmp_path / "model"
    save(place, joined([tower(tiny_bert), tower(tiny_bert)]), tiny_bert)
    weights = place / "tower2/model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-5] ^= 1
    weights.write_bytes(content)
    with pytest.raises(DataError, match="tower2"):
        load_encoder(place)


def test_towers_that_cannot_be_added_up_are_refused(tiny_models):
    bert = tiny_models["bert"]
    with pytest.raises(ConfigError, match="3 weights for 2 towers"):
        joined([tower(bert), tower(bert)], (1.0, 1.0, 1.0))
    with pytest.raises(ConfigError, match="different vocabularies"):
        shared_tokenizer([bert, tiny_models["roberta"]])
