from itertools import pairwise

import pytest
import torch
from matplotlib.text import Text

from tests import tiny
from workflow_scripts.figures.base import Request
from workflow_scripts.figures.layer_attention import COLUMNS, HOW_DRAWN, Config, draw, weights_of
from workflow_scripts.figures.style import figure_style, to_svg
from workflow_scripts.models.encoder import SentenceEncoder, load_backbone, load_tokenizer
from workflow_scripts.settings.readouts import layer_attention

SENTENCES = ["The old town.", "A king by the river in the winter."]
CONFIG = Config(sentences=SENTENCES, max_tokens=32)


def weights(folder, config=CONFIG, **changes):
    block = {
        "kind": "layer_attention", "pooling": "cls_last_and_attention_cls_avg", "weights": "softmax",
        "projection": "rrelu", "embeddings": True, "divisor": "layers", "first_state": 0,
    } | changes  # fmt: skip
    torch.manual_seed(0)
    readout = layer_attention.Config.parse(block, "readout")
    encoder = SentenceEncoder(load_backbone(folder), readout, head=True, head_at_test=True)
    return weights_of("a.b", 1, encoder, load_tokenizer(folder), config)


def test_every_layer_asks_every_layer_and_its_weights_sum_to_one(tiny_bert):
    table = weights(tiny_bert)
    assert table.schema == COLUMNS
    assert len(table) == 2 * (tiny.DEPTH + 1) ** 2
    sums = (
        table.group_by(["sentence", "query_layer"]).aggregate([("weight", "sum")])["weight_sum"].to_pylist()
    )
    assert sums == pytest.approx([1.0] * 6)
    first, second = (table.filter(table["sentence"].to_numpy() == text)["weight"] for text in SENTENCES)
    assert first.to_pylist() != second.to_pylist()


def test_without_the_embedding_output_layers_count_from_one(tiny_bert):
    table = weights(tiny_bert, embeddings=False)
    assert sorted(set(table["key_layer"].to_pylist())) == [1, 2]


def test_the_figure_names_sentences_and_runs(tiny_bert):
    with figure_style():
        figure = draw(weights(tiny_bert), Request(CONFIG, title="A title", footnotes=["a stand-in"]))
        svg = to_svg(figure, "layers", "A title", "About")
    for text in ("The old town.", "A title", "a stand-in", HOW_DRAWN[:30]):
        assert text in svg


def test_no_sentence_is_written_into_the_next_panel(tiny_bert):
    long = [
        f"{word} rode around the racetrack, with their racing gear on, until it rained." for word in "ABCD"
    ]
    config = Config(sentences=long, max_tokens=32)
    with figure_style():
        figure = draw(weights(tiny_bert, config), Request(config, title="A title", footnotes=[]))
        figure.draw_without_rendering()
    written = figure.findobj(lambda artist: isinstance(artist, Text) and "racetrack" in artist.get_text())
    boxes = sorted((text.get_window_extent() for text in written), key=lambda box: box.x0)
    assert len(boxes) == 4
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
