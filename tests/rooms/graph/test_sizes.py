"""Facts about encoders that are known before anything is fetched."""

import json

import pytest

from workflow_scripts.graph.sizes import Rows, Sizes


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
