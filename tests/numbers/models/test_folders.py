"""Model folders: written, and read by the pipeline, by sentence-transformers and by Transformers.

``test_every_method_loads`` does the same with what every method makes; here are kinds of encoders, damage, and ensembles.
"""

import json

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling

from tests.support import toys, training_jobs
from workflow_scripts.data.published import copy_files, files_of
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.methods import ensemble as method
from workflow_scripts.models.backbone import load_backbone, load_tokenizer, shared_tokenizer
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.ensemble import EnsembleEncoder
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.models.readouts.base import bypass_layernorms
from workflow_scripts.provenance.artefacts import job_record, writing_model_folder
from workflow_scripts.settings.names import Template
from workflow_scripts.settings.readouts import AnyReadout
from workflow_scripts.settings.readouts import Pooling as PoolingSettings

MAX_TOKENS = 12
TEXTS = [*toys.sentences(9, seed=4), "x", "The school by the river " * 4]
TEMPLATE = Template(text='The word of "[X]" is [MASK].', add_period=True)
SELECTOR = {
    "kind": "s2sent", "blocks": 2, "last_block": True, "fusion": "stack", "pooling": "mask", "squeeze": "dct",
    "frequencies": 4, "frequency_set": "figure", "dct": "mean", "reduction": 4, "activation": "relu",
    "bias": False, "batch_norm": False, "gate": "softmax",
}  # fmt: skip
POOLER = {
    "kind": "layer_attention", "pooling": "cls_last_and_attention_cls_avg", "weights": "softmax",
    "projection": "rrelu_per_query", "embeddings": True, "divisor": "layers", "first_layer": 0,
}  # fmt: skip


def pooling(pooler, layers=None):
    return {"kind": "pooling", "pooler": pooler, "layers": layers}


CASES = {  # readout, whether a head runs at test, template
    "cls": (pooling("cls"), False, None),
    "cls with head": (pooling("cls"), True, None),
    "first and last": (pooling("avg_first_last", (0, -1)), False, None),
    "three layers with head": (pooling("cls", (0, 0, 2)), True, None),
    "templated average": (pooling("avg"), False, TEMPLATE),
    "templated selector": (SELECTOR, False, TEMPLATE),
    "normalised selector": (SELECTOR | {"pooling": "avg", "batch_norm": True, "bias": True}, False, None),
    "pooler": (POOLER, True, None),
    "pooler without head": (POOLER, False, None),
    "mask token": ({"kind": "mask_token"}, False, TEMPLATE),
}
BUILT_IN = [
    case for case, (readout, _, template) in CASES.items() if readout["kind"] == "pooling" and not template
]


def encoder_of(folder, case="cls", scale=1.0):
    """An encoder of a folder, its first layer scaled; of the readout cls with a head that is saved in any case."""
    block, head_at_test, template = CASES[case]
    readout = TypeAdapter(AnyReadout).validate_python(block)
    torch.manual_seed(5)
    encoder = SentenceEncoder(
        load_backbone(folder),
        load_tokenizer(folder),
        readout,
        head=head_at_test or readout.has_head,
        head_at_test=head_at_test,
        template=template,
    )
    for parameter in encoder.backbone.parameters() if scale != 1 else ():
        parameter.data *= scale
    return encoder.eval()


def save(place, encoder):
    """Save an encoder; returns its vectors."""
    toys.save(place, encoder)
    return vectors_of(encoder)


def vectors_of(encoder):
    return encoder.encode(TEXTS, MAX_TOKENS)


def check_loads(place, expected, trust=True):
    """Both loaders give the vectors; a folder that sentence-transformers saved again does, too."""
    ours = load_encoder(place)
    np.testing.assert_allclose(ours.encode(TEXTS, MAX_TOKENS), expected, atol=5e-6)
    theirs = SentenceTransformer(str(place), device="cpu", trust_remote_code=trust, local_files_only=True)
    theirs.max_seq_length = MAX_TOKENS
    np.testing.assert_allclose(theirs.encode(TEXTS), expected, atol=5e-6)
    assert theirs.get_embedding_dimension() == expected.shape[1]
    if trust:
        again = place.with_name(f"{place.name} again")
        theirs.save_pretrained(str(again))
        twice = SentenceTransformer(str(again), device="cpu", trust_remote_code=True)
        assert twice.max_seq_length == MAX_TOKENS
        np.testing.assert_allclose(twice.encode(TEXTS, batch_size=2), expected, atol=5e-6)
    return ours


@pytest.mark.parametrize(
    ("kind", "case"),
    [("bert", case) for case in CASES]
    + [("roberta", "cls with head"), ("roberta", "pooler"), ("mpnet", "mask token"), ("mpnet", "templated selector")],
)  # fmt: skip
def test_every_loader_gives_the_same_vectors(tiny_models, tmp_path, kind, case):
    encoder = encoder_of(tiny_models[kind], case)
    expected = save(tmp_path / "model", encoder)
    loaded = check_loads(tmp_path / "model", expected, trust=case not in BUILT_IN)
    for name, weight in encoder.state_dict().items():  # a head that does not run at test among them
        assert torch.equal(loaded.state_dict()[name], weight), name


def test_a_pooler_removed_leaves_cls_of_the_last_layer(tiny_bert, tmp_path):
    """O-59: bit-equal, whatever the pooler's and the head's weights are."""
    readout = PoolingSettings(**pooling("cls_before_pooler"))
    own = save(tmp_path / "model", encoder_of(tiny_bert, "pooler"))
    encoder = load_encoder(tmp_path / "model", readout)
    found = encoder.encode(TEXTS, MAX_TOKENS)
    plain = SentenceEncoder(
        load_backbone(tiny_bert), load_tokenizer(tiny_bert), readout, head=False, head_at_test=False
    )
    assert np.array_equal(found, plain.encode(TEXTS, MAX_TOKENS))
    assert np.abs(own - found).max() > 1e-3


@pytest.mark.parametrize("limit", [24, 64])
def test_a_published_mpnet_keeps_its_published_length(tmp_path, limit):
    """As all-mpnet-base-v2 lies on the Hub: fewer tokens than positions, mean pooling, and a normalisation, without which
    the readout's vectors, and so the saved model's, have the same cosines.
    """
    folder = toys.write_model(tmp_path / "plain", "mpnet")
    modules = [Transformer(str(folder), max_seq_length=limit), Pooling(toys.WIDTH, "mean"), Normalize()]
    published = SentenceTransformer(modules=modules, device="cpu")
    (tmp_path / "plain/sentence_bert_config.json").write_text(json.dumps({"max_seq_length": limit}))
    (tmp_path / "fetched").mkdir()
    copy_files(tmp_path / "plain", tmp_path / "fetched", files_of(tmp_path / "plain"))
    plain = SentenceEncoder(
        load_backbone(tmp_path / "fetched"),
        load_tokenizer(tmp_path / "fetched"),
        PoolingSettings(**pooling("avg")),
        head=False,
        head_at_test=False,
    )
    save(tmp_path / "model", plain)
    encoder = load_encoder(tmp_path / "model")
    saved = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert saved.max_seq_length == published.max_seq_length == encoder.tokenizer.model_max_length == limit
    long = [*TEXTS, "the town by the river " * 12]
    vectors = saved.encode(long)
    np.testing.assert_allclose(vectors, encoder.encode(long, limit), atol=5e-6)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    assert np.abs(lengths - 1).min() > 0.1
    np.testing.assert_allclose(vectors / lengths, published.encode(long), atol=5e-6)


# Ensembles


def joined(sub_encoders, weights=None):
    return method.build(method.Config(module="ensemble", weights=weights), sub_encoders).eval()


@pytest.mark.parametrize(("w", "expected"), [(0.0, "twin"), (1.0, "published"), (0.7, "both")])
def test_a_fusion_with_a_published_encoder(tiny_bert, w, expected):
    """O-47, O-48, O-49: a twin is h_I + h_II, its fusion (1 - w)(h_I + h_II) + w h_InfoCSE."""
    one, other, published = (encoder_of(tiny_bert, scale=scale) for scale in (1, 1.1, 0.9))
    twin = joined([one, other])
    fused = joined([twin, published], (1 - w, w))
    parts = {"twin": sum(vectors_of(part) for part in (one, other))}
    parts["published"] = vectors_of(published)
    parts["both"] = (1 - w) * parts["twin"] + w * parts["published"]
    np.testing.assert_allclose(vectors_of(fused), parts[expected], atol=5e-6)
    assert fused.backbones == [part.backbone for part in (one, other, published)]


@pytest.mark.parametrize("bypassed", [0, 1])
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_a_saved_twin_gives_the_same_vectors_everywhere(tiny_models, tmp_path, kind, bypassed):
    """A saved twin gives the same vectors through every loader."""
    folder, place = tiny_models[kind], tmp_path / "model"
    twin = EnsembleEncoder([encoder_of(folder), encoder_of(folder, scale=1.1)], (1.0, 1.0), bypassed).eval()
    expected = save(place, twin)
    check_loads(place, expected)
    with pytest.raises(ValueError, match="trust_remote_code"):
        SentenceTransformer(str(place), device="cpu", local_files_only=True)


def test_a_nested_ensemble_loads_and_names_no_folder(tiny_bert, tmp_path):
    """An ensemble within an ensemble loads and its files name no folder."""
    twin = joined([encoder_of(tiny_bert), encoder_of(tiny_bert, scale=1.1)])
    fused = joined([twin, encoder_of(tiny_bert, "cls with head")], (0.3, 0.7))
    check_loads(tmp_path / "model", save(tmp_path / "model", fused))
    files = [path for path in (tmp_path / "model").rglob("*") if path.is_file()]
    assert len(files) > 15
    assert not any(str(tmp_path).encode() in path.read_bytes() for path in files)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sub_encoders_are_loaded_in_the_precision_asked_for(tiny_bert, tmp_path, dtype):
    """Sub-encoders are loaded in the precision that is asked for."""
    twin = joined([encoder_of(tiny_bert), encoder_of(tiny_bert, scale=1.1)])
    expected = save(tmp_path / "model", twin)
    options = {"model_kwargs": {"dtype": dtype}, "processor_kwargs": {"model_max_length": 9}}
    theirs = SentenceTransformer(str(tmp_path / "model"), device="cpu", trust_remote_code=True, **options)
    assert {parameter.dtype for parameter in theirs.parameters()} == {getattr(torch, dtype)}
    assert {part.tokenizer.model_max_length for part in theirs[0].sub_encoders} == {9}
    theirs.max_seq_length = MAX_TOKENS
    vectors = theirs.encode(TEXTS, convert_to_tensor=True)
    assert vectors.dtype == getattr(torch, dtype)
    np.testing.assert_allclose(vectors.float(), expected, atol=0.05 * np.abs(expected).max())


def test_encoders_of_two_tokenisers_are_fused(tiny_models, tmp_path, monkeypatch):
    """JTCSE + UC on RoBERTa, by rule build_ensemble: (1 - w)(h_I + h_II) + w h_InfoCSE, where InfoCSE is a BERT."""
    monkeypatch.chdir(tmp_path)
    roberta, bert = tiny_models["roberta"], tiny_models["bert"]
    twin = joined([encoder_of(roberta), encoder_of(roberta, scale=1.1)])
    expected = 0.3 * save(tmp_path / "twin/model", twin)
    expected += 0.7 * save(tmp_path / "published/model", encoder_of(bert))
    training_jobs.call(
        "build_ensemble",
        {"method": {"module": "ensemble", "weights": [0.3, 0.7]}},
        ["methods.ensemble", "models.ensemble", "models.readouts.pooling"],
        run="uc",
        seed="1",
        encoder=["twin/model/record.json", "published/model/record.json"],
        record="fused/model/record.json",
    )
    loaded = check_loads(tmp_path / "fused/model", expected)
    published = loaded.members[1]
    right = published.encode(TEXTS, MAX_TOKENS)
    published.tokenizer = loaded.tokenizer  # RoBERTa's tokens for BERT
    wrong = published.encode(TEXTS, MAX_TOKENS)
    assert np.abs(wrong - right).max() > 0.1
    tokens = loaded.tokenizer(TEXTS[:2], padding=True, return_tensors="pt")
    with pytest.raises(ConfigError, match="several tokenisers"):
        loaded(tokens.input_ids, tokens.attention_mask)
    with pytest.raises(ConfigError, match="different vocabularies"):
        shared_tokenizer([tiny_models["bert"], tiny_models["roberta"]])


def test_bypassed_layernorms_of_the_last_layers_are_left_out(tiny_bert):
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


# Refusals


@pytest.mark.parametrize("file", ["encoder1/head.safetensors", "record.json"])
def test_a_damaged_model_folder_is_refused_before_it_is_loaded(tiny_bert, tmp_path, file):
    place = tmp_path / "model"
    save(place, joined([encoder_of(tiny_bert), encoder_of(tiny_bert)]))
    content = bytearray((place / file).read_bytes())
    content[-5] ^= 1
    (place / file).write_bytes(content)
    with pytest.raises(DataError, match=str(place)):
        load_encoder(place)


def test_a_folder_that_no_run_wrote_is_refused(tiny_bert, tmp_path):
    place = tmp_path / "encoder"
    made = job_record("count_words", settings={}, inputs={}, outputs=[place])
    with writing_model_folder(place, made) as inside:
        load_backbone(tiny_bert).save_pretrained(inside)
        load_tokenizer(tiny_bert).save_pretrained(inside)
    with pytest.raises(DataError, match=r"semblance_encoder\.json"):
        load_encoder(place)
