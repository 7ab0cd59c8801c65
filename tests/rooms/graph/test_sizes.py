"""Facts about encoders that are known before anything is fetched."""

import json

import pytest

from tests.support.snakemake_plans import ROOT, settings_with
from workflow_scripts.graph.study import Study


def fetched(**source):
    return {"fetch": {"sources": [source], "licence": "x"}}


MINE = fetched(kind="local", path="mine")


def size(data_root, encoder, **encoders):
    """The size of one of some encoders."""
    settings = settings_with(name="mine", data_root=data_root and str(data_root), encoders=encoders)
    return Study(settings, {}, ROOT).encoders[encoder].size


def mine(data_root, **about):
    """The size of an encoder below the data root that says this of itself."""
    if about:
        (data_root / "mine").mkdir(exist_ok=True)
        (data_root / "mine/config.json").write_text(
            json.dumps({"num_hidden_layers": 3, "hidden_size": 48} | about)
        )
    return size(data_root, "mine", mine=MINE)


def test_a_size_comes_from_an_encoder_that_is_on_this_machine(tmp_path):
    mine(tmp_path, model_type="bert", max_position_embeddings=512)
    adapt = {"base": "minilm", "corpus": "wiki", "label": "x"}
    scratch = {"layers": 4, "width": 256, "heads": 4, "feed_forward": 8}
    encoders = {
        "minilm": MINE,
        "adapted": {"adapt": adapt},
        "small": {"adapt": adapt | {"from_scratch": scratch}},
        "bert_base": fetched(kind="hub", repository="x", revision="0" * 40),
    }
    assert (
        size(tmp_path, "minilm", **encoders)[:3] == size(tmp_path, "adapted", **encoders)[:3] == (3, 48, 512)
    )
    assert size(tmp_path, "small", **encoders)[:3] == (4, 256, 512)
    assert size(tmp_path, "bert_base", **encoders) is None
    assert size(None, "minilm", **encoders) is None


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
