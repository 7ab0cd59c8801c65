import numpy as np
import pytest
import torch

from tests import tiny
from workflow_scripts.errors import ConfigError
from workflow_scripts.figures.base import Request
from workflow_scripts.figures.style import figure_style, to_svg
from workflow_scripts.figures.token_similarity import (
    COLUMNS,
    HOW_DRAWN,
    Config,
    cosines_of,
    draw,
    unit_vectors,
    units_of,
)
from workflow_scripts.models.encoder import SentenceEncoder, load_backbone, load_tokenizer
from workflow_scripts.settings.readouts import pooling as pooling_readout

SENTENCES = ["The old town.", "A king mourns by the river."]  # the tiny tokeniser spells mourns
CONFIG = {"runs": ["a.b"], "sentences": SENTENCES, "layer": -1, "unit": "words", "max_tokens": 32}


REQUEST = Request(Config.parse(CONFIG, "grid"))


def encoder_of(folder):
    readout = pooling_readout.Config(kind="pooling", pooler="cls_before_pooler", layers=None)
    return SentenceEncoder(load_backbone(folder), readout, head=False, head_at_test=False)


def found(folder, run="a.b", seed=1, **changes):
    config = Config.parse(CONFIG | changes, "grid")
    return cosines_of(run, seed, encoder_of(folder), load_tokenizer(folder), config)


def units(folder, unit):
    tokenizer = load_tokenizer(folder)
    return units_of(tokenizer(SENTENCES[1], return_tensors="pt"), tokenizer, SENTENCES[1], unit)


def test_words_are_those_of_the_sentence_and_hold_all_their_pieces(tiny_bert):
    (words, of_words), (pieces, of_pieces) = units(tiny_bert, "words"), units(tiny_bert, "pieces")
    assert words == ["A", "king", "mourns", "by", "the", "river", "."]
    assert of_words == [[1], [2], [3, 4, 5, 6, 7, 8], [9], [10], [11], [12]]
    assert pieces == ["a", "king", "m", "##o", "##u", "##r", "##n", "##s", "by", "the", "river", "."]
    assert [place for places in of_pieces for place in places] == list(range(1, 13))


def test_a_word_is_the_mean_of_its_pieces():
    """By hand: (1, 0) and (0, 1) make (.5, .5), at cosine 1 / sqrt 2 to either."""
    states = torch.tensor([[9.0, 9.0], [1.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
    vectors = unit_vectors(states, [[1, 2], [3]])
    assert vectors.tolist() == [[0.5, 0.5], [0.0, 2.0]]
    assert torch.cosine_similarity(*vectors, dim=0).item() == pytest.approx(0.70710678)


@pytest.mark.parametrize("kind", tiny.KINDS)
@pytest.mark.parametrize("layer", [-1, 0])
def test_cosines_are_those_of_the_states_of_a_layer(tiny_models, kind, layer):
    folder = tiny_models[kind]
    table = found(folder, layer=layer, unit="pieces").to_pandas()
    tokens = load_tokenizer(folder)(SENTENCES[0], return_tensors="pt")
    with torch.inference_mode():
        states = load_backbone(folder)(**tokens, output_hidden_states=True).hidden_states[layer][0].double()
    old, town = states[2].numpy(), states[3].numpy()  # after [CLS] and "the"
    expected = old @ town / np.linalg.norm(old) / np.linalg.norm(town)
    own = table[
        (table["sentence"] == SENTENCES[0]) & (table["row_place"] == 1) & (table["column_place"] == 2)
    ]
    assert own["row_unit"].tolist() == ["old"] and own["column_unit"].tolist() == ["town"]
    assert own["cosine"].tolist() == [pytest.approx(expected, abs=1e-6)]


def test_every_pair_of_words_stands_there_and_a_word_is_like_itself(tiny_bert):
    table = found(tiny_bert)
    assert table.schema == COLUMNS
    assert len(table) == 4**2 + 7**2
    rows = table.to_pylist()
    cosines = {(row["sentence"], row["row_place"], row["column_place"]): row["cosine"] for row in rows}
    for (sentence, row, column), value in cosines.items():
        assert value == pytest.approx(cosines[sentence, column, row], abs=1e-9)
        assert (value == pytest.approx(1)) == (row == column)


def test_the_cosine_of_the_sentences_is_that_of_the_runs_own_vectors(tiny_bert):
    """3R, Table 4."""
    encoder, tokenizer = encoder_of(tiny_bert).eval(), load_tokenizer(tiny_bert)
    tokens = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    with torch.inference_mode():
        expected = torch.cosine_similarity(*encoder(tokens.input_ids, tokens.attention_mask), dim=0).item()
    assert found(tiny_bert)["sentence_cosine"].to_pylist() == pytest.approx([expected] * 65, abs=1e-5)


def test_a_layer_that_is_not_there_is_refused(tiny_bert):
    with pytest.raises(ConfigError, match=r"token_similarity\.layer: 9; hidden states are 0 to 2"):
        found(tiny_bert, layer=9)


def test_the_figure_names_runs_words_and_cosines(tiny_bert):
    import pyarrow as pa

    table = pa.concat_tables([found(tiny_bert, run="x.one"), found(tiny_bert, run="x.two")])
    with figure_style():
        figure = draw(table, REQUEST._replace(title="A title", footnotes=["a stand-in"]))
        svg = to_svg(figure, "words", "A title", "About")
    between = f"sentences: {table['sentence_cosine'][0].as_py():.2f}"
    for text in ("one", "two", "mourns", SENTENCES[0], "1.00", between, "a stand-in", HOW_DRAWN[:30]):
        assert text in svg
