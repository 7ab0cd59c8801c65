import hashlib
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoTokenizer, MPNetConfig, MPNetModel

from tests import tiny
from workflow_scripts.data.encoders import copy_files
from workflow_scripts.errors import DataError
from workflow_scripts.models.encoder import SentenceEncoder, load_backbone, load_tokenizer
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.models.readouts import pooling as pooling_readout
from workflow_scripts.models.saving import save_encoder
from workflow_scripts.provenance.artefacts import job_record, writing_model_folder
from workflow_scripts.settings.readouts.pooling import LAYERS

MAX_TOKENS = 12
TEXTS = [*tiny.sentences(9, seed=4), "x", "The school by the river " * 4]
CASES = [
    (pooler, None, head_at_test)
    for pooler in LAYERS
    for head_at_test in ([True, False] if pooler == "cls" else [False])
] + [("avg_first_last", (0, -1), False), ("cls", (0, 0, 2), True), ("avg", (1,), False)]
NAMES = [f"{pooler}-{layers}-{'head' if at_test else 'bare'}" for pooler, layers, at_test in CASES]


def make_encoder(folder, pooler, layers, head_at_test):
    pooling = pooling_readout.Config(kind="pooling", pooler=pooler, layers=layers)
    encoder = SentenceEncoder(
        load_backbone(folder), pooling, head=pooling.has_head, head_at_test=head_at_test
    )
    if encoder.head is not None:
        draw = torch.Generator().manual_seed(5)
        encoder.head.dense.weight.data = torch.randn(tiny.WIDTH, tiny.WIDTH, generator=draw)
    return encoder.eval()


def save(place, folder, pooler="avg", layers=None, head_at_test=False):
    encoder, tokenizer = make_encoder(folder, pooler, layers, head_at_test), load_tokenizer(folder)
    made = job_record("pool_encoder", settings={}, inputs={}, outputs=[place])
    with writing_model_folder(place, made) as inside:
        save_encoder(inside, encoder, tokenizer)
    return encode(encoder, tokenizer, TEXTS, MAX_TOKENS)


def files_of(folder):
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths
    }


@pytest.mark.parametrize(("pooler", "layers", "head_at_test"), CASES, ids=NAMES)
@pytest.mark.parametrize("kind", tiny.KINDS)
def test_the_three_loaders_give_the_same_vectors(tiny_models, tmp_path, kind, pooler, layers, head_at_test):
    from sentence_transformers import SentenceTransformer

    place = tmp_path / "model"
    vectors = save(place, tiny_models[kind], pooler, layers, head_at_test)

    ours, tokenizer = load_encoder(place)
    np.testing.assert_allclose(encode(ours, tokenizer, TEXTS, MAX_TOKENS), vectors, atol=5e-6)

    theirs = SentenceTransformer(str(place), device="cpu", local_files_only=True)
    theirs.max_seq_length = MAX_TOKENS
    np.testing.assert_allclose(theirs.encode(TEXTS), vectors, atol=5e-6)

    tokenizer = AutoTokenizer.from_pretrained(place)
    if head_at_test:  # the hidden states are not all
        with pytest.raises(ValueError, match="more than a Transformers model"):
            AutoModel.from_pretrained(place)
        return
    model = AutoModel.from_pretrained(place)
    batch = tokenizer(TEXTS, truncation=True, max_length=MAX_TOKENS, padding=True, return_tensors="pt")
    with torch.inference_mode():
        states = model(
            input_ids=batch.input_ids, attention_mask=batch.attention_mask, output_hidden_states=True
        ).hidden_states
    chosen = torch.stack([states[index] for index in layers or LAYERS[pooler]]).mean(dim=0)
    weight = batch.attention_mask.unsqueeze(-1)
    pooled = chosen[:, 0] if pooler.startswith("cls") else (chosen * weight).sum(1) / weight.sum(1)
    np.testing.assert_allclose(pooled.numpy(), vectors, atol=5e-6)


def test_a_head_that_is_not_used_at_test_is_kept_all_the_same(tiny_bert, tmp_path):
    save(tmp_path / "model", tiny_bert, "cls", None, head_at_test=False)
    loaded, _ = load_encoder(tmp_path / "model")
    expected = make_encoder(tiny_bert, "cls", None, head_at_test=False)
    assert torch.equal(loaded.head.dense.weight, expected.head.dense.weight)
    assert not loaded.head_at_test
    assert not list((tmp_path / "model").glob("*_Dense"))


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_a_saved_folder_holds_no_pickle_and_no_code(tiny_models, tmp_path, kind):
    for pooler in ("cls", "avg_first_last"):
        place = tmp_path / pooler
        save(place, tiny_models[kind], pooler, None, head_at_test=pooler == "cls")
        files = [path for path in place.rglob("*") if path.is_file()]
        assert {path.suffix for path in files} == {".json", ".safetensors"}
        for path in files:
            assert not zipfile.is_zipfile(path)  # torch.save
            if path.suffix == ".json":
                json.loads(path.read_text("utf-8"))
            else:
                assert load_file(path)
        types = [module["type"] for module in json.loads((place / "modules.json").read_text())]
        assert all(name.startswith("sentence_transformers.") for name in types)


def test_neither_the_folders_name_nor_its_place_reach_the_bytes(tiny_bert, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = {}
    for name in ("one", "a/much/deeper/two"):
        Path(name).mkdir(parents=True)
        with monkeypatch.context() as there:
            there.chdir(name)
            save(Path("model"), tiny_bert, "cls", None, head_at_test=True)
        made[name] = files_of(Path(name))
    first, second = made.values()
    assert len(first) > 8
    assert first == second
    for path in Path("one/model").rglob("*.json"):
        assert str(tmp_path) not in path.read_text("utf-8")


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_a_model_takes_texts_as_long_as_its_encoder_does(tiny_models, tmp_path, kind):
    from sentence_transformers import SentenceTransformer

    save(tmp_path / "model", tiny_models[kind])
    encoder, tokenizer = load_encoder(tmp_path / "model")
    model = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert model.max_seq_length == tokenizer.model_max_length == 64
    long = ["the town " * 60]
    np.testing.assert_allclose(model.encode(long), encode(encoder, tokenizer, long, 64), atol=5e-6)


@pytest.mark.parametrize("limit", [24, 64])
def test_a_published_mpnet_keeps_the_length_that_it_was_published_for(tmp_path, limit):
    """As all-mpnet-base-v2 lies on the Hub: fewer tokens than positions, mean pooling, and a normalisation, without which
    the readout's vectors, and so the saved model's, have the same cosines.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    torch.manual_seed(0)
    tokenizer = tiny.make_tokenizer("roberta")
    sizes = {
        "hidden_size": tiny.WIDTH,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
    }
    MPNetModel(MPNetConfig(vocab_size=len(tokenizer), max_position_embeddings=66, **sizes)).save_pretrained(
        tmp_path / "plain"
    )
    tokenizer.save_pretrained(tmp_path / "plain")
    modules = [
        Transformer(str(tmp_path / "plain"), max_seq_length=limit),
        Pooling(tiny.WIDTH, "mean"),
        Normalize(),
    ]
    published = SentenceTransformer(modules=modules, device="cpu")
    (tmp_path / "plain/sentence_bert_config.json").write_text(json.dumps({"max_seq_length": limit}))
    (tmp_path / "fetched").mkdir()
    copy_files(tmp_path / "plain", tmp_path / "fetched")
    save(tmp_path / "model", tmp_path / "fetched")
    encoder, tokenizer = load_encoder(tmp_path / "model")
    saved = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert saved.max_seq_length == published.max_seq_length == tokenizer.model_max_length == limit
    long = [*TEXTS, "the town by the river " * 12]
    vectors = saved.encode(long)
    np.testing.assert_allclose(vectors, encode(encoder, tokenizer, long, limit), atol=5e-6)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    assert np.abs(lengths - 1).min() > 0.1
    np.testing.assert_allclose(vectors / lengths, published.encode(long), atol=5e-6)


def test_a_pretrained_pooler_is_saved_as_it_was(tiny_bert, tmp_path):
    save(tmp_path / "model", tiny_bert)
    before, after = load_backbone(tiny_bert), load_backbone(tmp_path / "model")
    assert torch.equal(before.pooler.dense.weight, after.pooler.dense.weight)


@pytest.mark.parametrize("damage", ["weights", "description", "head", "record"])
def test_a_damaged_model_folder_is_refused_before_it_is_loaded(tiny_bert, tmp_path, damage):
    place = tmp_path / "model"
    save(place, tiny_bert, "cls", None, head_at_test=True)
    if damage == "weights":
        weights = place / "0_Transformer/model.safetensors"
        content = bytearray(weights.read_bytes())
        content[-5] ^= 1
        weights.write_bytes(content)
    elif damage == "description":
        description = place / "semblance_encoder.json"
        description.write_text(description.read_text().replace('"cls"', '"avg"'))
    elif damage == "head":
        (place / "head.safetensors").unlink()
    else:
        (place / "record.json").unlink()
    with pytest.raises(DataError, match=str(place)):
        load_encoder(place)


def test_a_folder_that_no_run_wrote_is_refused(tiny_bert, tmp_path):
    place = tmp_path / "encoder"
    made = job_record("fetch_encoder", settings={}, inputs={}, outputs=[place])
    with writing_model_folder(place, made) as inside:
        load_backbone(tiny_bert).save_pretrained(inside)
        load_tokenizer(tiny_bert).save_pretrained(inside)
    with pytest.raises(DataError, match=r"semblance_encoder\.json"):
        load_encoder(place)
