"""Maps of attention weights, and of what is inside small models."""

from contextlib import chdir
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
import torch
from matplotlib.text import Text

from tests import tiny
from tests.rooms.figures.conftest import FOOTNOTE, drawn, request_of
from workflow_scripts.columns.scores import ATTENTION
from workflow_scripts.errors import ConfigError
from workflow_scripts.figures.base import load_figure
from workflow_scripts.figures.inside_models import (
    cosines_of,
    single_encoders,
    unit_vectors,
    units_of,
    weights_of,
)
from workflow_scripts.figures.maps import mean_weights
from workflow_scripts.models.encoder import SentenceEncoder, load_backbone, load_tokenizer
from workflow_scripts.models.ensemble import Ensemble
from workflow_scripts.models.folders import save_encoder
from workflow_scripts.provenance.artefacts import job_record, writing_model_folder
from workflow_scripts.settings.readouts import layer_attention, pooling

TOKENS = ["[CLS]", "hello", "[SEP]"]
SENTENCES = ["The old town.", "A king mourns by the river."]  # the tiny tokeniser spells mourns
BLOCKS = {
    "layer_attention": {"sentences": SENTENCES, "max_tokens": 32},
    "token_similarity": {
        "runs": ["a.b"], "sentences": SENTENCES, "layer": -1, "unit": "words", "max_tokens": 32,
    },
}  # fmt: skip
LAYERS, WORDS = (request_of(kind, block) for kind, block in BLOCKS.items())


# Attention weights


def weights(sentences=("Hello.",), layers=(1, 2), heads=2, first=0.5):
    """Every query attends to [CLS] by ``first`` plus a tenth of the head's number."""
    rows = [
        (sentence, layer, head, q, query, k, key, to_cls if k == 0 else (1 - to_cls) / 2)
        for sentence in sentences
        for layer in layers
        for head, to_cls in enumerate(first + head / 10 for head in range(heads))
        for q, query in enumerate(TOKENS)
        for k, key in enumerate(TOKENS)
    ]
    columns = list(zip(*rows, strict=True))
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, ATTENTION, strict=True)], schema=ATTENTION)


def attention(maps, *layers):
    """Mean weights of some layers, their figure and its texts."""
    request = request_of("attention_maps", {"layers": layers})
    table = mean_weights(maps, request.config)
    return table, *drawn(table, request, "attention_maps")


def test_weights_are_means_over_heads_and_seeds_of_the_first_sentence_and_chosen_layers():
    maps = [("a", weights(("One.", "Two."), first=0.5)), ("a", weights(("One.",), first=0.3))]
    table, *_ = attention(maps, 2, 9)
    assert set(table["layer"].to_pylist()) == {2} and len(table) == 9
    to_cls = [row["weight"] for row in table.to_pylist() if row["key_position"] == 0]
    assert to_cls == pytest.approx([(0.5 + 0.6 + 0.3 + 0.4) / 4] * 3)


def test_a_map_has_queries_downwards_and_keys_to_the_right_and_the_figure_names_them():
    _, figure, found = attention([("x.one", weights()), ("x.two", weights())], 1, 2)
    assert {"layer 1", "layer 2", "one", "two", "[CLS]", "hello", FOOTNOTE} <= {*found}
    values = figure.axes[0].collections[0].get_array()
    assert values.tolist() == [pytest.approx([0.55, 0.225, 0.225])] * 3
    assert figure.axes[0].yaxis_inverted()


def test_a_long_name_is_no_longer_than_its_row_is_high():
    """Or it would run into the name of the next row."""
    runs = ["Frozen average of first and last layer.one", "Read as an average of all layers.two"]
    _, figure, _ = attention([(run, weights()) for run in runs], 1)
    above, below = (axes.yaxis.label for axes in figure.axes)
    assert above.get_window_extent().y0 > below.get_window_extent().y1
    assert [label.get_text().replace("\n", " ").replace(", ", ".") for label in (above, below)] == runs


# Models


def encoder_of(folder, kind, **changes):
    """A small encoder, read as a figure asks for."""
    if kind == "token_similarity":
        readout = pooling.Config(kind="pooling", pooler="cls_before_pooler", layers=None)
        return SentenceEncoder(load_backbone(folder), readout, head=False, head_at_test=False)
    block = {
        "kind": "layer_attention", "pooling": "cls_last_and_attention_cls_avg", "weights": "softmax",
        "projection": "rrelu", "embeddings": True, "divisor": "layers", "first_state": 0,
    } | changes  # fmt: skip
    torch.manual_seed(0)
    readout = layer_attention.Config.parse(block, "readout")
    return SentenceEncoder(load_backbone(folder), readout, head=True, head_at_test=True)


def saved(folder, encoder, tokenizer, seed):
    """The record of a model of run a.b."""
    wildcards = {"run": "a.b", "seed": seed}
    record = job_record("train_encoder", settings={}, inputs={}, outputs=[], wildcards=wildcards)
    with writing_model_folder(folder, record) as place:
        save_encoder(place, encoder, tokenizer)
    return folder / "record.json"


@pytest.mark.parametrize("figure", BLOCKS)
def test_every_seed_is_looked_into(tiny_bert, tmp_path, figure):
    tokenizer, encoder = load_tokenizer(tiny_bert), encoder_of(tiny_bert, figure)
    with chdir(tmp_path):
        root = tmp_path / "results/lab/runs/a.b"
        models = [saved(root / f"seed{seed}/model", encoder, tokenizer, seed) for seed in "12"]
        data = load_figure(figure).points(request_of(figure, BLOCKS[figure], inputs={"models": models}))
    seeds = data.select(["run", "seed"]).group_by(["run", "seed"]).aggregate([])
    assert seeds.to_pylist() == [{"run": "a.b", "seed": seed} for seed in (1, 2)]


def test_a_run_of_several_encoders_is_refused(tiny_bert, tmp_path):
    member = encoder_of(tiny_bert, "token_similarity")
    twins = Ensemble([member, member], [0.5, 0.5])
    with chdir(tmp_path):
        path = saved(tmp_path / "model", twins, load_tokenizer(tiny_bert), "1")
        with pytest.raises(ConfigError, match=r"a\.b holds several encoders"):
            list(single_encoders([path]))


# Attention over layers


def layers_of(folder, config=LAYERS.config, **changes):
    encoder = encoder_of(folder, "layer_attention", **changes)
    return weights_of("a.b", 1, encoder, load_tokenizer(folder), config)


def test_every_layer_asks_every_layer_and_its_weights_sum_to_one(tiny_bert):
    table = layers_of(tiny_bert)
    assert len(table) == 2 * (tiny.DEPTH + 1) ** 2
    by_query = table.group_by(["sentence", "query_layer"]).aggregate([("weight", "sum")])
    assert by_query["weight_sum"].to_pylist() == pytest.approx([1.0] * 6)
    first, second = (table.filter(table["sentence"].to_numpy() == text)["weight"] for text in SENTENCES)
    assert first.to_pylist() != second.to_pylist()


def test_without_the_embedding_output_layers_count_from_one(tiny_bert):
    assert {*layers_of(tiny_bert, embeddings=False)["key_layer"].to_pylist()} == {1, 2}


def test_sentences_are_named_and_none_is_written_into_the_next_panel(tiny_bert):
    long = [
        f"{word} rode around the racetrack, with their racing gear on, until it rained." for word in "ABCD"
    ]
    request = request_of("layer_attention", {"sentences": long, "max_tokens": 32})
    figure, found = drawn(layers_of(tiny_bert, request.config), request, "layer_attention")
    written = figure.findobj(lambda artist: isinstance(artist, Text) and "racetrack" in artist.get_text())
    boxes = sorted((text.get_window_extent() for text in written), key=lambda box: box.x0)
    assert len(boxes) == 4 and all(left.x1 < right.x0 for left, right in pairwise(boxes))
    assert {"A title", FOOTNOTE, "weight"} <= {*found} and any(
        text.startswith("Rows: layers") for text in found
    )


# Cosines between words


def words_of(folder, run="a.b", **changes):
    config = WORDS.config.model_copy(update=changes)
    return cosines_of(run, 1, encoder_of(folder, "token_similarity"), load_tokenizer(folder), config)


def test_words_are_those_of_the_sentence_and_hold_all_their_pieces(tiny_bert):
    tokenizer = load_tokenizer(tiny_bert)
    tokens = tokenizer(SENTENCES[1], return_tensors="pt")
    words, of_words = units_of(tokens, tokenizer, SENTENCES[1], "words")
    pieces, of_pieces = units_of(tokens, tokenizer, SENTENCES[1], "pieces")
    assert words == ["A", "king", "mourns", "by", "the", "river", "."]
    assert of_words == [[1], [2], [3, 4, 5, 6, 7, 8], [9], [10], [11], [12]]
    assert pieces == ["a", "king", "m", "##o", "##u", "##r", "##n", "##s", "by", "the", "river", "."]
    assert [place for places in of_pieces for place in places] == list(range(1, 13))


def test_a_word_is_the_mean_of_its_pieces():
    """By hand: (1, 0) and (0, 1) make (.5, .5)."""
    states = torch.tensor([[9.0, 9.0], [1.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
    assert unit_vectors(states, [[1, 2], [3]]).tolist() == [[0.5, 0.5], [0.0, 2.0]]


@pytest.mark.parametrize("kind", tiny.KINDS)
@pytest.mark.parametrize("layer", [-1, 0])
def test_cosines_are_those_of_the_states_of_a_layer(tiny_models, kind, layer):
    folder = tiny_models[kind]
    rows = words_of(folder, layer=layer, unit="pieces").to_pylist()
    tokens = load_tokenizer(folder)(SENTENCES[0], return_tensors="pt")
    with torch.inference_mode():
        states = load_backbone(folder)(**tokens, output_hidden_states=True).hidden_states[layer][0].double()
    old, town = states[2].numpy(), states[3].numpy()  # after [CLS] and "the"
    expected = old @ town / np.linalg.norm(old) / np.linalg.norm(town)
    places = SENTENCES[0], 1, 2
    (own,) = [row for row in rows if (row["sentence"], row["row_place"], row["column_place"]) == places]
    assert (own["row_unit"], own["column_unit"]) == ("old", "town")
    assert own["cosine"] == pytest.approx(expected, abs=1e-6)


def test_the_cosine_of_the_sentences_is_that_of_the_runs_own_vectors(tiny_bert):
    """3R, Table 4."""
    encoder, tokenizer = encoder_of(tiny_bert, "token_similarity").eval(), load_tokenizer(tiny_bert)
    tokens = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    with torch.inference_mode():
        expected = torch.cosine_similarity(*encoder(tokens.input_ids, tokens.attention_mask), dim=0).item()
    assert words_of(tiny_bert)["sentence_cosine"].to_pylist() == pytest.approx([expected] * 65, abs=1e-5)


def test_a_layer_that_is_not_there_is_refused(tiny_bert):
    with pytest.raises(ConfigError, match=r"token_similarity\.layer: 9; hidden states are 0 to 2"):
        words_of(tiny_bert, layer=9)


def test_the_figure_names_runs_words_and_cosines(tiny_bert):
    table = pa.concat_tables([words_of(tiny_bert, run=run) for run in ("x.one", "x.two")])
    _, found = drawn(table, WORDS, "token_similarity")
    between = f"sentences: {table['sentence_cosine'][0].as_py():.2f}"
    assert {"one,", "two,", between, "mourns", SENTENCES[0], "1.00", FOOTNOTE} <= {*found}
