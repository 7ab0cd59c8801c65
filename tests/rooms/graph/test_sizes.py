"""What is known of encoders before anything is fetched."""

from types import SimpleNamespace

import pytest
from transformers import AutoConfig, AutoModel

from tests.planning import ROOT
from workflow_scripts.graph.sizes import Rows, Sizes, _causal, _drops
from workflow_scripts.models.encoder import DROPOUT_SETTINGS, check_fit, has_dropout, load_backbone
from workflow_scripts.settings.start import BUILT_AS_BERT, Size

CAUSAL = ("gpt2", "llama", "qwen3", "gemma3_text", "bloom")


def test_a_size_comes_from_the_encoder_itself_and_else_from_the_rates(tmp_path):
    folder = tmp_path / "models/mine"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"num_hidden_layers": 3, "hidden_size": 48}')
    on_hub = {"fetch": {"sources": [{"kind": "hub", "repository": "x", "revision": "y"}]}}
    encoders = {
        "minilm": {"fetch": {"sources": [{"kind": "local", "path": "models/mine"}]}},
        "adapted": {"adapt": {"base": "minilm"}},
        "small": {"adapt": {"base": "minilm", "from_scratch": {"layers": 4, "width": 256}}},
        "bert_base": on_hub,
        "unheard_of": on_hub,
    }

    def size(encoder, data_root=tmp_path):
        return Sizes({"name": "mine", "encoders": encoders}, ROOT, data_root).of(encoder)

    assert size("minilm")[:6] == size("adapted")[:6] == Size(3, 48)[:6]
    assert size("small")[:3] == (4, 256, size("minilm").positions)
    assert size("bert_base") == Size(12, 768) and size("unheard_of") is None
    assert size("minilm", None) == Size(6, 384)
    config = (
        '{"num_hidden_layers": 3, "hidden_size": 48, "max_position_embeddings": 514, "model_type": "%s"%s}'
    )
    for kind, positions in (("roberta", 512), ("mpnet", 512), ("bert", 514), ("llama", None)):
        padding = ', "pad_token_id": 1' if kind == "roberta" else ""
        (folder / "config.json").write_text(config % (kind, padding))
        assert size("minilm")[:4] == (3, 48, positions, kind)


@pytest.mark.parametrize("kind", [*BUILT_AS_BERT, "mpnet", "distilbert", "modernbert"])
def test_an_encoder_drops_what_transformers_says(kind):
    usual = AutoConfig.for_model(kind)
    for setting in (name for name in DROPOUT_SETTINGS if hasattr(usual, name)):
        nothing = dict.fromkeys((name for name in DROPOUT_SETTINGS if hasattr(usual, name)), 0.0)
        for given in ({}, {setting: 0.2}, {setting: 0.0}, nothing, nothing | {setting: 0.2}):
            whole = SimpleNamespace(config=AutoConfig.for_model(kind, **given))
            assert _drops({"model_type": kind} | given) == has_dropout(whole), given
    assert _drops({"model_type": "unheard of"}) is None


@pytest.mark.parametrize(
    ("kind", "setting"),
    [(kind, {}) for kind in ("bert", "mpnet", "electra", "albert", "distilbert", "gpt2", "llama", "qwen3", "bloom")]
    + [("qwen3", {"is_causal": False}), ("gemma3_text", {}), ("gemma3_text", {"use_bidirectional_attention": True})],
)  # fmt: skip
def test_an_encoder_attends_as_it_does_when_loaded(tmp_path, kind, setting):
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    model = AutoModel.from_config(AutoConfig.for_model(kind, vocab_size=50, **sizes, **setting))
    model.save_pretrained(tmp_path / "models/mine")
    loaded = []
    check_fit(lambda start: loaded.extend(start.sizes) or [], load_backbone(tmp_path / "models/mine"))
    block = {"fetch": {"sources": [{"kind": "local", "path": "models/mine"}]}}
    size = Sizes({"name": "mine", "encoders": {"mine": block}}, ROOT, tmp_path).of("mine")
    assert size[:2] == loaded[0][:2] == (1, 16)
    assert loaded[0].causal == (kind in CAUSAL and not setting)
    assert size.causal == (None if kind == "bloom" else loaded[0].causal)


def test_a_decoder_of_an_unknown_family_is_one_if_it_was_published_as_one():
    assert _causal({"model_type": "new", "architectures": ["NewForCausalLM"]})
    assert not _causal({"model_type": "new", "architectures": ["NewForCausalLM"], "is_causal": False})
    assert _causal({"model_type": "new", "architectures": ["NewModel"]}) is None


def test_rows_of_a_corpus_are_what_contracts_limits_and_round_trips_leave():
    trip = {"corpus": "all", "max_sentences": None, "form": "expanded"}
    config = {
        "datasets": {"mine": {"contract": {"rows": 3}}, "vague": {"contract": {}}},
        "corpora": {
            "all": {"dataset": "mine", "dev_sentences": 0, "max_sentences": None},
            "two": {"dataset": "mine", "dev_sentences": 1, "max_sentences": None},
            "none": {"dataset": "mine", "dev_sentences": 3, "max_sentences": None},
            "cut": {"dataset": "vague", "dev_sentences": 0, "max_sentences": 9},
            "vague": {"dataset": "vague", "dev_sentences": 1, "max_sentences": None},
            "twice": {"round_trip": trip},
        },
    }
    rows = Rows(config)
    found = [rows.most(corpus) for corpus in config["corpora"]]
    assert found == [3, 2, None, 9, None, 6]
