"""What is known of encoders before anything is fetched."""

import json

import pytest
from transformers import AutoConfig, AutoModel

from workflow_scripts.graph.sizes import Rows, Sizes
from workflow_scripts.models.encoder import check_fit, has_dropout, load_backbone
from workflow_scripts.settings.start import BUILT_AS_BERT

CAUSAL = ("gpt2", "llama", "qwen3", "gemma3_text", "bloom")


def mine(data_root, **about):
    """The size of an encoder below the data root that says this of itself."""
    if about:
        (data_root / "mine").mkdir(exist_ok=True)
        (data_root / "mine/config.json").write_text(
            json.dumps({"num_hidden_layers": 3, "hidden_size": 48} | about)
        )
    block = {"fetch": {"sources": [{"kind": "local", "path": "mine"}]}}
    return Sizes({"name": "mine", "encoders": {"mine": block}}, data_root).of("mine")


def test_a_size_comes_from_an_encoder_that_is_on_this_machine(tmp_path):
    mine(tmp_path, model_type="bert", max_position_embeddings=512)
    encoders = {
        "minilm": {"fetch": {"sources": [{"kind": "local", "path": "mine"}]}},
        "adapted": {"adapt": {"base": "minilm"}},
        "small": {"adapt": {"base": "minilm", "from_scratch": {"layers": 4, "width": 256}}},
        "bert_base": {"fetch": {"sources": [{"kind": "hub", "repository": "x", "revision": "y"}]}},
    }
    there, nowhere = (Sizes({"name": "mine", "encoders": encoders}, root).of for root in (tmp_path, None))
    assert there("minilm")[:3] == there("adapted")[:3] == (3, 48, 512)
    assert there("small")[:3] == (4, 256, 512)
    assert there("bert_base") is None and nowhere("minilm") is None


@pytest.mark.parametrize(
    ("about", "positions"),
    [
        ({"model_type": "roberta", "pad_token_id": 1}, 512),
        ({"model_type": "mpnet"}, 512),
        ({"model_type": "bert"}, 514),
        ({"model_type": "llama"}, None),
    ],
)
def test_positions_of_padding_are_no_tokens(tmp_path, about, positions):
    assert mine(tmp_path, max_position_embeddings=514, **about).positions == positions


@pytest.mark.parametrize("kind", [*BUILT_AS_BERT, "mpnet", "distilbert", "modernbert"])
def test_an_encoder_drops_what_transformers_says(tmp_path, kind):
    own = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    own |= {
        "vocab_size": 9,
        "pad_token_id": 0,
        "bos_token_id": 0,
        "eos_token_id": 0,
        "max_position_embeddings": 8,
    }
    names = [name for name in AutoConfig.for_model(kind).to_dict() if "dropout" in name and "cla" not in name]
    nothing = dict.fromkeys((name for name in names if not name.startswith(("qa", "seq"))), 0.0)
    assert len(nothing) > 1
    for setting in nothing:
        for given in ({}, {setting: 0.2}, {setting: 0.0}, nothing, nothing | {setting: 0.2}):
            whole = AutoModel.from_config(AutoConfig.for_model(kind, **own, **given))
            size = mine(tmp_path, model_type=kind, max_position_embeddings=512, **given)
            assert size.drops == has_dropout(whole), given


@pytest.mark.parametrize(
    ("kind", "setting"),
    [(kind, {}) for kind in ("bert", "mpnet", "electra", "albert", "distilbert", "gpt2", "llama", "qwen3", "bloom")]
    + [("qwen3", {"is_causal": False}), ("gemma3_text", {}), ("gemma3_text", {"use_bidirectional_attention": True})],
)  # fmt: skip
def test_an_encoder_attends_as_it_does_when_loaded(tmp_path, kind, setting):
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    model = AutoModel.from_config(AutoConfig.for_model(kind, vocab_size=50, **sizes, **setting))
    model.save_pretrained(tmp_path / "mine")
    loaded = []
    check_fit(lambda start: loaded.extend(start.sizes) or [], load_backbone(tmp_path / "mine"))
    size = mine(tmp_path)
    assert size[:2] == loaded[0][:2] == (1, 16)
    assert loaded[0].causal == (kind in CAUSAL and not setting)
    assert size.causal == (None if kind == "bloom" else loaded[0].causal)


@pytest.mark.parametrize(
    ("about", "causal"),
    [
        ({"architectures": ["NewForCausalLM"]}, True),
        ({"architectures": ["NewForCausalLM"], "is_causal": False}, False),
        ({"architectures": ["NewModel"]}, None),
    ],
)
def test_of_an_unknown_family_causal_is_what_was_published_so_and_dropout_unknown(tmp_path, about, causal):
    size = mine(tmp_path, model_type="new", **about)
    assert (size.causal, size.drops) == (causal, None)


def test_rows_of_a_corpus_are_what_contracts_limits_and_round_trips_leave():
    trip = {"corpus": "all", "max_sentences": None, "form": "expanded"}
    config = {
        "datasets": {"mine": {"contract": {"rows": 3}}, "vague": {"contract": {}}},
        "corpora": {
            "all": {"dataset": "mine", "dev_sentences": 0, "max_sentences": None},
            "two": {"dataset": "mine", "dev_sentences": 1, "max_sentences": None},
            "none": {"dataset": "mine", "dev_sentences": 3, "max_sentences": None},
            "first": {"dataset": "mine", "dev_sentences": 0, "max_sentences": 1},
            "cut": {"dataset": "vague", "dev_sentences": 0, "max_sentences": 9},
            "vague": {"dataset": "vague", "dev_sentences": 1, "max_sentences": None},
            "twice": {"round_trip": trip},
        },
    }
    rows = Rows(config, None)
    found = [rows.most(corpus) for corpus in config["corpora"]]
    assert found == [3, 2, None, 1, 9, None, 6]


def test_lines_of_a_text_on_this_machine_are_counted_and_held_to_its_contract(tmp_path):
    (tmp_path / "text.txt").write_text("A line.\n" * 20)
    source = {"kind": "local", "reader": "lines", "files": {"text": {"path": "text.txt", "sha256": None}}}
    corpus = {"dataset": "mine", "dev_sentences": 0, "max_sentences": None}
    for least, found in (
        (20, []),
        (1000, ["datasets.mine.contract.min_rows: 1000; it has 20. Lower it, or take more text."]),
    ):
        dataset = {"sources": [source], "contract": {"min_rows": least}}
        rows = Rows({"datasets": {"mine": dataset}, "corpora": {"mine": corpus}}, tmp_path)
        assert (rows.most("mine"), [*rows.too_few("mine")]) == (20, found)
