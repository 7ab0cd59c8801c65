import pytest

from workflow_scripts.extraction.layers import STATIC, every_layer, parse_layers


@pytest.mark.parametrize(
    ("name", "layers"),
    [("static", (STATIC,)), ("0", (0,)), ("last", (12,)), ("1+last", (1, 12)), ("0+1+2+last", (0, 1, 2, 12))],
)
def test_names_of_layers_mean_the_papers(name, layers):
    assert parse_layers(name, 12) == layers


def test_each_stands_for_every_hidden_state_once():
    assert every_layer(["each", "1+last", "2"], 2) == ["0", "1", "2", "1+last"]
