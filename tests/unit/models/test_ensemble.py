import json

import numpy as np
import pytest
import torch
from transformers import AutoModel

from tests import jobs, tiny
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.methods import ensemble as method
from workflow_scripts.models.encoder import SentenceEncoder, load_backbone, load_tokenizer
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.ensemble import Ensemble, bypass_layernorms
from workflow_scripts.models.loading import load_encoder, shared_tokenizer
from workflow_scripts.models.readouts import pooling as pooling_readout
from workflow_scripts.models.saving import save_encoder
from workflow_scripts.provenance.artefacts import job_record, writing_model_folder

TEXTS = [*tiny.sentences(9, seed=4), "x", "The school by the river " * 4]
MAX_TOKENS = 12
CLS = pooling_readout.Config(kind="pooling", pooler="cls_before_pooler", layers=None)
AVERAGE = pooling_readout.Config(kind="pooling", pooler="avg", layers=None)


def sub_encoder(folder, scale=1.0, readout=CLS):
    backbone = load_backbone(folder)
    for parameter in backbone.encoder.layer[0].parameters():
        parameter.data *= scale
    return SentenceEncoder(backbone, readout, head=False, head_at_test=False)


def joined(sub_encoders, weights=None):
    return method.build(method.Config(module="ensemble", weights=weights), sub_encoders).eval()


def save(place, encoder, folder):
    record = job_record("join_encoders", settings={}, inputs={}, outputs=[place])
    place.parent.mkdir(parents=True, exist_ok=True)
    with writing_model_folder(place, record) as inside:
        save_encoder(inside, encoder, load_tokenizer(folder))


def vectors_of(encoder, folder):
    return encode(encoder, load_tokenizer(folder), TEXTS, MAX_TOKENS)


def test_two_runs_are_added_up(tiny_bert):
    """O-47: the twin with no term at all; O-48."""
    sub_encoders = [sub_encoder(tiny_bert), sub_encoder(tiny_bert, 1.5)]
    parts = [vectors_of(one, tiny_bert) for one in sub_encoders]
    np.testing.assert_allclose(vectors_of(joined(sub_encoders), tiny_bert), parts[0] + parts[1], atol=5e-6)


@pytest.mark.parametrize(("w", "expected"), [(0.0, "twin"), (1.0, "published"), (0.7, "both")])
def test_a_fusion_with_a_published_encoder(tiny_bert, w, expected):
    """O-49: (1 - w)(h_I + h_II) + w h_InfoCSE."""
    twin = joined([sub_encoder(tiny_bert), sub_encoder(tiny_bert, 1.5)])
    published = sub_encoder(tiny_bert, 0.5)
    fused = vectors_of(joined([twin, published], (1 - w, w)), tiny_bert)
    parts = {"twin": vectors_of(twin, tiny_bert), "published": vectors_of(published, tiny_bert)}
    parts["both"] = (1 - w) * parts["twin"] + w * parts["published"]
    np.testing.assert_allclose(fused, parts[expected], atol=5e-6)


def test_six_encoders_are_counted_and_so_are_those_of_a_twin_within(tiny_bert):
    """EDFSE has six; a twin fused with a third has three."""
    assert len(joined([sub_encoder(tiny_bert) for _ in range(6)]).leaves) == 6
    twin = joined([sub_encoder(tiny_bert), sub_encoder(tiny_bert)])
    assert len(joined([twin, sub_encoder(tiny_bert)]).leaves) == 3


@pytest.mark.parametrize("bypassed", [0, 1])
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_a_saved_twin_gives_the_same_vectors_through_every_loader(tiny_models, tmp_path, kind, bypassed):
    from sentence_transformers import SentenceTransformer

    folder = tiny_models[kind]
    twin = Ensemble([sub_encoder(folder), sub_encoder(folder, 1.5)], (1.0, 1.0), bypassed).eval()
    expected = vectors_of(twin, folder)
    place = tmp_path / "model"
    save(place, twin, folder)
    loaded, tokenizer = load_encoder(place)
    np.testing.assert_allclose(encode(loaded, tokenizer, TEXTS, MAX_TOKENS), expected, atol=5e-6)
    theirs = SentenceTransformer(str(place), device="cpu", trust_remote_code=True, local_files_only=True)
    theirs.max_seq_length = MAX_TOKENS
    np.testing.assert_allclose(theirs.encode(TEXTS), expected, atol=5e-6)
    assert [part.max_seq_length for part in theirs[0].sub_encoders] == [MAX_TOKENS] * 2
    if bypassed:
        return
    parts = [SentenceTransformer(str(place / f"encoder{n}"), device="cpu") for n in (1, 2)]
    for part in parts:
        part.max_seq_length = MAX_TOKENS
    np.testing.assert_allclose(sum(part.encode(TEXTS) for part in parts), expected, atol=5e-6)
    stock = [AutoModel.from_pretrained(place / f"encoder{n}") for n in (1, 2)]
    batch = tokenizer(TEXTS, truncation=True, max_length=MAX_TOKENS, padding=True, return_tensors="pt")
    with torch.inference_mode():
        states = [
            m(input_ids=batch.input_ids, attention_mask=batch.attention_mask).last_hidden_state for m in stock
        ]
    np.testing.assert_allclose(sum(s[:, 0] for s in states).numpy(), expected, atol=5e-6)


def test_an_ensemble_within_an_ensemble_is_saved_and_loaded(tiny_bert, tmp_path):
    from sentence_transformers import SentenceTransformer

    twin = joined([sub_encoder(tiny_bert), sub_encoder(tiny_bert, 1.5)])
    fused = joined([twin, sub_encoder(tiny_bert, 0.5, AVERAGE)], (0.3, 0.7))
    expected = vectors_of(fused, tiny_bert)
    save(tmp_path / "model", fused, tiny_bert)
    loaded, tokenizer = load_encoder(tmp_path / "model")
    np.testing.assert_allclose(encode(loaded, tokenizer, TEXTS, MAX_TOKENS), expected, atol=5e-6)
    theirs = SentenceTransformer(str(tmp_path / "model"), device="cpu", trust_remote_code=True)
    theirs.max_seq_length = MAX_TOKENS
    np.testing.assert_allclose(theirs.encode(TEXTS), expected, atol=5e-6)


def test_a_folder_with_towers_runs_no_code_unless_it_is_trusted(tiny_bert, tmp_path):
    from sentence_transformers import SentenceTransformer

    save(tmp_path / "model", joined([sub_encoder(tiny_bert), sub_encoder(tiny_bert)]), tiny_bert)
    modules = json.loads((tmp_path / "model/modules.json").read_text())
    assert [module["type"] for module in modules] == ["encoder_sum.EncoderSum"]
    with pytest.raises(ValueError, match="trust_remote_code"):
        SentenceTransformer(str(tmp_path / "model"), device="cpu", local_files_only=True)


def test_neither_place_nor_time_reach_the_bytes(tiny_bert, tmp_path):
    hashes = []
    for name in ("one", "a/much/deeper/two"):
        place = tmp_path / name / "model"
        place.parent.mkdir(parents=True)
        save(place, joined([sub_encoder(tiny_bert), sub_encoder(tiny_bert, 1.5)]), tiny_bert)
        files = sorted(path for path in place.rglob("*") if path.is_file() and path.name != "record.json")
        assert len(files) > 15
        assert not any("__pycache__" in path.parts for path in files)
        hashes.append({path.relative_to(place).as_posix(): path.read_bytes() for path in files})
    assert hashes[0] == hashes[1]


def test_a_damaged_tower_is_refused_before_it_is_loaded(tiny_bert, tmp_path):
    place = tmp_path / "model"
    save(place, joined([sub_encoder(tiny_bert), sub_encoder(tiny_bert)]), tiny_bert)
    weights = place / "encoder2/model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-5] ^= 1
    weights.write_bytes(content)
    with pytest.raises(DataError, match="encoder2"):
        load_encoder(place)


def test_encoders_that_cannot_be_added_up_are_refused(tiny_models):
    bert = tiny_models["bert"]
    with pytest.raises(ConfigError, match="3 weights for 2 sub-encoders"):
        joined([sub_encoder(bert), sub_encoder(bert)], (1.0, 1.0, 1.0))
    with pytest.raises(ConfigError, match="different vocabularies"):
        shared_tokenizer([bert, tiny_models["roberta"]])


@pytest.fixture
def fused_run(tiny_models, tmp_path, monkeypatch):
    """A RoBERTa twin fused with a BERT by rule join_encoders, and the vectors that each has by itself."""
    monkeypatch.chdir(tmp_path)
    roberta, bert = tiny_models["roberta"], tiny_models["bert"]
    twin = joined([sub_encoder(roberta), sub_encoder(roberta, 1.5)])
    published = sub_encoder(bert, 0.5)
    save(tmp_path / "twin/model", twin, roberta)
    save(tmp_path / "published/model", published, bert)
    jobs.call(
        "join_encoders",
        {"method": {"module": "ensemble", "weights": [0.3, 0.7]}},
        ["methods.ensemble", "models.ensemble", "models.readouts.pooling"],
        run="uc",
        seed="1",
        encoder=["twin/model/record.json", "published/model/record.json"],
        record="fused/model/record.json",
    )
    expected = 0.3 * vectors_of(twin, roberta) + 0.7 * vectors_of(published, bert)
    return tmp_path / "fused/model", expected


def test_encoders_of_two_tokenisers_are_fused_each_reading_its_own(fused_run, tiny_models):
    """JTCSE + UC on RoBERTa: (1 - w)(h_I + h_II) + w h_InfoCSE, where InfoCSE is a BERT."""
    from sentence_transformers import SentenceTransformer

    place, expected = fused_run
    loaded, tokenizer = load_encoder(place)
    kinds = [tiny_models[kind] for kind in ("roberta", "bert")]
    assert [own.get_vocab() for own in loaded.tokenizers] == [
        load_tokenizer(one).get_vocab() for one in kinds
    ]
    np.testing.assert_allclose(encode(loaded, tokenizer, TEXTS, MAX_TOKENS), expected, atol=5e-6)
    wrong = encode(loaded.members[1], tokenizer, TEXTS, MAX_TOKENS)  # RoBERTa's tokens for BERT
    right = encode(loaded.members[1], loaded.tokenizers[1], TEXTS, MAX_TOKENS)
    assert np.abs(wrong - right).max() > 0.1
    theirs = SentenceTransformer(str(place), device="cpu", trust_remote_code=True, local_files_only=True)
    theirs.max_seq_length = MAX_TOKENS
    np.testing.assert_allclose(theirs.encode(TEXTS), expected, atol=5e-6)
    theirs.save_pretrained(str(place.parent / "again"))
    again = SentenceTransformer(str(place.parent / "again"), device="cpu", trust_remote_code=True)
    np.testing.assert_allclose(again.encode(TEXTS, batch_size=2), expected, atol=5e-6)


def test_such_an_ensemble_takes_sentences_and_no_tokens(fused_run):
    loaded, tokenizer = load_encoder(fused_run[0])
    tokens = tokenizer(TEXTS[:2], padding=True, return_tensors="pt")
    with pytest.raises(ConfigError, match="several tokenisers"):
        loaded(tokens.input_ids, tokens.attention_mask)


def test_an_ensemble_that_sentence_transformers_saved_again_is_the_same_model(tiny_bert, tmp_path):
    from sentence_transformers import SentenceTransformer

    save(tmp_path / "model", joined([sub_encoder(tiny_bert), sub_encoder(tiny_bert, 1.5)]), tiny_bert)
    first = SentenceTransformer(str(tmp_path / "model"), device="cpu", trust_remote_code=True)
    first.max_seq_length = MAX_TOKENS
    first.save_pretrained(str(tmp_path / "again"))
    again = SentenceTransformer(str(tmp_path / "again"), device="cpu", trust_remote_code=True)
    assert again.max_seq_length == MAX_TOKENS
    np.testing.assert_allclose(again.encode(TEXTS), first.encode(TEXTS), atol=5e-6)


def test_of_bypassed_layernorms_those_of_the_last_layers_are_left_out(tiny_bert):
    """JTCSE, Fig. 8, written out for one layer of two."""
    backbone, tokenizer = load_backbone(tiny_bert), load_tokenizer(tiny_bert)
    tokens = tokenizer(TEXTS[0], return_tensors="pt")
    with torch.no_grad():
        stock = backbone(**tokens, output_hidden_states=True).hidden_states
        bypass_layernorms(backbone, 1)
        found = backbone(**tokens, output_hidden_states=True).hidden_states
        layer = backbone.encoder.layer[-1]
        attended = layer.attention.output.dense(layer.attention.self(stock[-2])[0]) + stock[-2]
        last = layer.output.dense(layer.intermediate(attended)) + attended
    assert all(torch.equal(one, other) for one, other in zip(found[:-1], stock[:-1], strict=True))
    torch.testing.assert_close(found[-1], last, rtol=1e-5, atol=1e-5)
    assert not torch.allclose(found[-1], stock[-1], atol=0.1)
