"""What is known of encoders before anything is fetched."""

from types import SimpleNamespace

import pytest
from transformers import AutoConfig

from workflow_scripts.graph.sizes import Sizes, _drops
from workflow_scripts.models.encoder import DROPOUT_SETTINGS, has_dropout
from workflow_scripts.models.packed import FAMILIES
from workflow_scripts.settings.start import BUILT_AS_BERT, Size


def test_a_size_comes_from_the_encoder_itself_and_else_from_the_rates(tmp_path):
    (tmp_path / "data/models/mine").mkdir(parents=True)
    (tmp_path / "data/models/mine/config.json").write_text('{"num_hidden_layers": 3, "hidden_size": 48}')
    (tmp_path / "rates.yaml").write_text(
        "encoders: {bert: {layers: 12, width: 768}, mine: {layers: 1, width: 1}}"
    )
    local = {"fetch": {"sources": [{"kind": "local", "path": "models/mine"}]}}
    encoders = {
        "mine": local,
        "adapted": {"adapt": {"base": "mine"}},
        "afresh": {"adapt": {"base": "mine", "afresh": {"layers": 4, "width": 256}}},
        "bert": {"fetch": {"sources": [{"kind": "hub", "repository": "x", "revision": "y"}]}},
        "unheard_of": {
            "fetch": {"sources": [{"kind": "package", "package": "no_such_package", "path": "model"}]}
        },
    }
    sizes = Sizes(encoders, tmp_path / "data", tmp_path / "results", tmp_path / "rates.yaml")
    assert sizes.of("mine") == sizes.of("adapted") == Size(3, 48)
    assert sizes.of("afresh") == Size(4, 256, sizes.of("mine").positions)
    assert sizes.of("bert") == Size(12, 768)
    assert sizes.of("unheard_of") is None
    config = (
        '{"num_hidden_layers": 3, "hidden_size": 48, "max_position_embeddings": 514, "model_type": "%s"%s}'
    )
    for kind, positions in (("roberta", 512), ("mpnet", 512), ("bert", 514), ("llama", None)):
        padding = ', "pad_token_id": 1' if kind == "roberta" else ""
        (tmp_path / "data/models/mine/config.json").write_text(config % (kind, padding))
        fresh = Sizes(encoders, tmp_path / "data", tmp_path / "results", tmp_path / "rates.yaml")
        assert fresh.of("mine")[:4] == (3, 48, positions, kind)
    without = Sizes(encoders, None, tmp_path / "results", tmp_path / "rates.yaml")
    assert without.of("mine") == Size(1, 1)


@pytest.mark.parametrize("kind", [*BUILT_AS_BERT, "mpnet", "distilbert", "modernbert"])
def test_an_encoder_drops_what_transformers_says(kind):
    usual = AutoConfig.for_model(kind)
    for setting in (name for name in DROPOUT_SETTINGS if hasattr(usual, name)):
        nothing = dict.fromkeys((name for name in DROPOUT_SETTINGS if hasattr(usual, name)), 0.0)
        for given in ({}, {setting: 0.2}, {setting: 0.0}, nothing, nothing | {setting: 0.2}):
            whole = SimpleNamespace(config=AutoConfig.for_model(kind, **given))
            assert _drops({"model_type": kind} | given) == has_dropout(whole), given
    assert _drops({"model_type": "unheard of"}) is None


def test_encoders_that_attend_across_are_those_that_are_packed():
    assert set(BUILT_AS_BERT) == FAMILIES
