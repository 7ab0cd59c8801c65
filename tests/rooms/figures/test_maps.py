"""Maps of attention weights, and of what is inside small models."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from tests.rooms.figures.conftest import FOOTNOTE, shown
from tests.support import toys
from workflow_scripts.columns import ATTENTION
from workflow_scripts.figures.maps import draw_maps
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.provenance.artefacts import job_record, writing_model_folder
from workflow_scripts.settings.readouts import LayerAttention

TOKENS = ["[CLS]", "hello", "[SEP]"]
SENTENCES = ["The old town.", "A king mourns by the river."]  # the tiny tokeniser spells mourns
BLOCKS = {
    "layer_attention": {"sentences": SENTENCES, "max_tokens": 32},
    "token_similarity": {
        "runs": ["a.b"], "sentences": SENTENCES, "max_tokens": 32,
    },
}  # fmt: skip


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


def test_weights_are_means_over_heads_and_seeds(stored):
    """Weights are means over heads and seeds of the first sentence and chosen layers."""
    maps = [("a", weights(("One.", "Two."), first=0.5)), ("a", weights(("One.",), first=0.3))]
    files = [stored(table, run=run) for run, table in maps]
    points = shown("attention_maps", {"layers": (2, 9)}, {"maps": files}).data
    assert set(points["layer"]) == {2}
    assert len(points) == 9
    to_cls = points["weight"][points["key_position"] == 0]
    assert to_cls.tolist() == pytest.approx([(0.5 + 0.6 + 0.3 + 0.4) / 4] * 3)


def test_all_layers_are_drawn_and_no_more_than_six_side_by_side(stored):
    files = [stored(weights(("One.",), layers=range(1, 13), first=0.5), run="a")]
    points = shown("attention_maps", {"layers": "all"}, {"maps": files}).data
    assert sorted(set(points["layer"])) == [*range(1, 13)]
    named = points.assign(panel=points["layer"].astype(str))
    sides = ("query_position", "key_position", "key_token")
    drawn = draw_maps(named, "panel", sides, "weight", 0, 1)
    maps = [axes for axes in drawn.axes if axes.get_title()]
    assert [axes.get_title() for axes in maps] == [f"a\n{layer}" for layer in range(1, 13)]
    assert {axes.get_subplotspec().get_topmost_subplotspec().get_gridspec().ncols for axes in maps} == {6}


def test_a_map_has_queries_as_rows_and_means_over_seeds():
    """The first query attends to both tokens by 0.2 and 0.8, with another seed by 0.4 and 0.6; the second by halves."""
    weights = {1: [[0.2, 0.8], [0.5, 0.5]], 2: [[0.4, 0.6], [0.5, 0.5]]}
    points = pd.DataFrame(
        [
            ("a.b", "a sentence", query, key, TOKENS[key], weight)
            for rows in weights.values()
            for query, row in enumerate(rows)
            for key, weight in enumerate(row)
        ],
        columns=["run", "panel", "query", "key", "token", "weight"],
    )
    (axes,) = (
        axes
        for axes in draw_maps(points, "panel", ("query", "key", "token"), "weight", 0, 1).axes
        if axes.get_title()
    )
    (drawn,) = axes.collections
    np.testing.assert_allclose(drawn.get_array(), [[0.3, 0.7], [0.5, 0.5]])
    assert axes.get_ylim() == (2, 0)  # the first query is on top


# Models


def encoder_of(folder, kind):
    """A small encoder, read as a figure asks for."""
    if kind == "token_similarity":
        return toys.encoder(folder, "cls_before_pooler")
    block = {
        "kind": "layer_attention", "pooling": "cls_last_and_attention_cls_avg", "weights": "softmax",
        "projection": "rrelu", "embeddings": True, "divisor": "layers", "first_layer": 0,
    }  # fmt: skip
    torch.manual_seed(0)
    readout = LayerAttention.parse(block, "readout")
    return SentenceEncoder(
        load_backbone(folder), load_tokenizer(folder), readout, head=True, head_at_test=True
    )


@pytest.fixture
def inside(tiny_bert, tmp_path):
    """Draws a figure of the saved encoders of one run, one of each seed."""

    def draw(kind, *seeds):
        for seed in seeds:
            wildcards = {"run": "a.b", "seed": str(seed)}
            record = job_record("train_encoder", settings={}, inputs={}, outputs=[], wildcards=wildcards)
            with writing_model_folder(tmp_path / f"seed{seed}/model", record) as place:
                encoder_of(tiny_bert, kind).save(place)
        files = [tmp_path / f"seed{seed}/model/record.json" for seed in seeds]
        return shown(kind, BLOCKS[kind], {"models": files})

    return draw


@pytest.mark.parametrize("kind", BLOCKS)
def test_every_seed_has_points_and_the_figure_names_sentences(inside, kind):
    points, _, found = inside(kind, 1, 2)
    assert set(zip(points["run"], points["seed"], strict=True)) == {("a.b", 1), ("a.b", 2)}
    assert {"A title", FOOTNOTE, *SENTENCES} <= {*found}


def test_weights_of_every_query_layer_sum_to_one(inside):
    points = inside("layer_attention", 1).data
    assert len(points) == 2 * (toys.DEPTH + 1) ** 2
    assert points.groupby(["sentence", "query_layer"])["weight"].sum().tolist() == pytest.approx([1.0] * 6)
    first, second = (points["weight"][points["sentence"] == text].tolist() for text in SENTENCES)
    assert first != second


def test_cosines_are_those_of_means_of_words(inside, tiny_bert):
    """Of mourns, which has six pieces."""
    points = inside("token_similarity", 1).data
    tokens = load_tokenizer(tiny_bert)(SENTENCES[1], return_tensors="pt")
    with torch.inference_mode():
        states = load_backbone(tiny_bert)(**tokens).last_hidden_state[0].double()
    king, mourns = states[2].numpy(), states[3:9].mean(dim=0).numpy()
    expected = king @ mourns / np.linalg.norm(king) / np.linalg.norm(mourns)
    found = points[(points["row_unit"] == "king") & (points["column_unit"] == "mourns")]
    assert found["cosine"].item() == pytest.approx(expected, abs=1e-6)


def test_the_cosine_of_sentences_is_that_of_the_run(inside, tiny_bert):
    """3R, Table 4."""
    encoder, tokenizer = encoder_of(tiny_bert, "token_similarity").eval(), load_tokenizer(tiny_bert)
    tokens = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    with torch.inference_mode():
        expected = torch.cosine_similarity(*encoder(tokens.input_ids, tokens.attention_mask), dim=0).item()
    drawn = inside("token_similarity", 1)
    assert drawn.data["sentence_cosine"].tolist() == pytest.approx([expected] * 65, abs=1e-5)
    assert f"sentences: a.b: {expected:.2f}." in drawn.said
    assert {"mourns", "1.00"} <= {*drawn.texts}
