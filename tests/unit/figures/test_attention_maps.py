import pyarrow as pa
import pytest

from workflow_scripts.columns.scores import ATTENTION
from workflow_scripts.figures.attention_maps import COLUMNS, Config, draw, mean_weights
from workflow_scripts.figures.base import Request
from workflow_scripts.figures.style import figure_style, to_svg

REQUEST = Request(Config(layers=[1]))
TOKENS = ["[CLS]", "hello", "[SEP]"]


def weights(sentences=("Hello.",), layers=(1, 2), heads=2, first=0.5):
    """Every query attends to [CLS] by ``first`` plus a tenth of the head's number."""
    rows = []
    for sentence in sentences:
        for layer in layers:
            for head in range(heads):
                for q, query in enumerate(TOKENS):
                    rest = (1 - first - head / 10) / 2
                    for k, key in enumerate(TOKENS):
                        weight = first + head / 10 if k == 0 else rest
                        rows.append((sentence, layer, head, q, query, k, key, weight))
    columns = list(zip(*rows, strict=True))
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, ATTENTION, strict=True)], schema=ATTENTION)


def test_weights_are_means_over_heads_and_seeds_of_the_first_sentence_and_chosen_layers():
    maps = [("a", weights(("One.", "Two."), first=0.5)), ("a", weights(("One.",), first=0.3))]
    table = mean_weights(maps, Config(layers=[2, 9]))
    assert table.schema == COLUMNS
    assert set(table["layer"].to_pylist()) == {2}
    assert len(table) == 9
    to_cls = [row["weight"] for row in table.to_pylist() if row["key_position"] == 0]
    assert to_cls == pytest.approx([(0.5 + 0.6 + 0.3 + 0.4) / 4] * 3)


def test_the_figure_names_runs_layers_and_tokens():
    table = mean_weights([("x.one", weights()), ("x.two", weights())], Config(layers=[1, 2]))
    with figure_style():
        svg = to_svg(
            draw(table, REQUEST._replace(title="A title", footnotes=["a stand-in"])),
            "name",
            "A title",
            "About it",
        )
    for text in ("layer 1", "layer 2", "one", "two", "[CLS]", "hello", "a stand-in"):
        assert text in svg


def test_a_long_name_is_no_longer_than_its_row_is_high():
    """Or it would run into the name of the next row."""
    runs = ["Frozen average of first and last layer.one", "Read as an average of all layers.two"]
    table = mean_weights([(run, weights()) for run in runs], Config(layers=[1]))
    with figure_style():
        drawn = draw(table, REQUEST._replace(title="A title", footnotes=[]))
        drawn.draw_without_rendering()
    above, below = (axes.yaxis.label for axes in drawn.axes)
    assert above.get_window_extent().y0 > below.get_window_extent().y1
    assert [label.get_text().replace("\n", " ").replace(", ", ".") for label in (above, below)] == runs


def test_without_weights_the_figure_says_so():
    table = mean_weights([("a", ATTENTION.empty_table())], Config(layers=[1]))
    with figure_style():
        svg = to_svg(
            draw(table, REQUEST._replace(title="Title", footnotes=[])), "name", "Title", "Description"
        )
    assert "No attention weights were kept." in svg
