"""Figures of heat maps, a row for each run: attention between tokens and over layers, and cosines between words.

Attention weights of one sentence are JTCSE's Figure 9, attention over layers LayerAttPooler's Figure 3, and cosines
between words 3R's Figures 1 and 3 and Table 4; the last two load models. 3R shows cosines of "token embeddings" and
labels them with words, but says neither which layer it uses nor how it treats words of several pieces. ASSUME: the
last layer, from which sentence vectors are computed, and means over a word's pieces, as its axes suggest.

Shape suffixes: T tokens, W words or pieces, D width, L layers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from workflow_scripts.columns import ATTENTION
from workflow_scripts.errors import ConfigError
from workflow_scripts.evaluation.correlation import cosine
from workflow_scripts.figures.base import (
    MODELS,
    Declaration,
    Drawn,
    Figure,
    FigureRequest,
    frame,
    new_figure,
    side_by_side,
)
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.reporting.records import run_and_seed, wildcard
from workflow_scripts.settings.figures import AttentionMaps, LayerAttentionMaps, TokenSimilarity

if TYPE_CHECKING:
    from torch import Tensor

    from workflow_scripts.models.encoder import SentenceEncoder

_AROUND_INCHES, _TOKEN_INCHES = 1.3, 0.12  # height of a map: title and labels, and each row
_PANELS = 6  # maximum in a row
_EMPTY = MappingProxyType({"frame_on": False, "xticks": (), "yticks": ()})
"""Style of a panel without a map."""


def draw_maps(
    points: pd.DataFrame,
    panel: str,
    sides: tuple[str, str, str],
    value: str,
    low: float,
    high: float,
    numbers_up_to: int = 0,
) -> Figure:
    """Draw rows of maps for each run: means over all other columns, on one scale of colours.

    Args:
        points: A row for each number, with its ``run``.
        panel: Column whose values distinguish a run's maps, and are their titles.
        sides: Columns with the row and the column of a number in its map, and with the label of both.
        value: Column of the numbers.
        low: Minimum of the scale of colours.
        high: Maximum of the scale of colours.
        numbers_up_to: Maximum size of maps that show their numbers.
    """
    import seaborn

    row, column, label = sides
    runs, titles = [*points["run"].unique()], [*points[panel].unique()]
    height = _AROUND_INCHES + _TOKEN_INCHES * points[column].nunique()
    columns = side_by_side(len(titles), _PANELS)
    rows = math.ceil(len(titles) / columns)  # per run
    figure, panels = new_figure(height * len(runs) * rows, len(runs) * rows, columns, subplot_kw=_EMPTY)
    for (run, title), group in points.groupby(["run", panel], sort=False):
        down, across = divmod(titles.index(title), columns)
        axes = panels[runs.index(run) * rows + down, across]
        numbers = group.pivot_table(value, row, column)
        labels = group.groupby(column)[label].first()
        seaborn.heatmap(
            numbers, ax=axes, vmin=low, vmax=high, cmap="cividis_r", xticklabels=labels, yticklabels=labels,
            annot=len(labels) <= numbers_up_to, fmt=".2f", annot_kws={"size": 6},
            cbar=across == columns - 1 or title == titles[-1],
        )  # fmt: skip
        axes.set(xlabel="", ylabel="", title=f"{run}\n{title}")
        axes.tick_params(axis="x", rotation=90)
        axes.tick_params(axis="y", rotation=0)
    return figure


# Attention weights

_KEYS = {
    "run": "str", "layer": "int",
    "query_position": "int", "query_token": "str", "key_position": "int", "key_token": "str",
}  # fmt: skip


@partial(
    Declaration,
    title="Where tokens attend: {title}",
    description="Maps of attention weights of one sentence, a row per run, a column per layer.",
    caption=(
        "Attention weights of one sentence in every run of {experiment}, averaged over heads, seeds and, in an "
        "ensemble, encoders: a row of maps for each run, a column for each layer. High weights in the columns of "
        "the last tokens are the attention sink of JTCSE's Figure 9."
    ),
    reads={"maps": "<results>/scores/attention/{suite}/{run}/seed{seed}.maps.parquet"},
    settings=AttentionMaps,
)
def attention_maps(request: FigureRequest[AttentionMaps]) -> Drawn:
    """Draw attention weights of one sentence, a row for each query and a column for each key."""
    tables = ((wildcard(path, "run"), read_table(path, ATTENTION)) for path in request.inputs["maps"])
    points = mean_weights(tables, request.config)
    if not len(points):
        return Drawn(points, None, ["No attention weights were kept."])
    in_order = points.sort_values("layer", kind="stable")
    named = in_order.assign(panel="layer " + in_order["layer"].astype("str"))
    figure = draw_maps(named, "panel", ("query_position", "key_position", "key_token"), "weight", 0, 1)
    note = "Rows: tokens that attend; columns: tokens that are attended to; means over heads, seeds and encoders."
    return Drawn(points, figure, [note])


def mean_weights(tables: Iterable[tuple[str, pa.Table]], config: AttentionMaps) -> pd.DataFrame:
    """Return weights of the first sentence in some layers, means over heads, seeds and encoders.

    Args:
        tables: Runs, each with a table of ``columns.ATTENTION``.
        config: The layers.
    """
    parts = [frame([], **_KEYS, weight="float")]
    for run, table in tables:
        chosen = pc.field("sentence") == table["sentence"][0]
        if config.layers != "all":
            chosen &= pc.field("layer").isin(config.layers)
        parts.append(table.filter(chosen).to_pandas().assign(run=run))
    means = pd.concat(parts).groupby([*_KEYS], sort=False)["weight"].mean()
    return means.reset_index().astype(_KEYS)


# Inside models


def single_encoders(records: Iterable[Path]) -> Iterator[tuple[str, int, SentenceEncoder]]:
    """Yield run, seed and encoder of models, loaded one after another.

    Raises:
        ConfigError: if a model consists of several encoders.
    """
    from workflow_scripts.models.encoder import SentenceEncoder
    from workflow_scripts.models.loading import load_encoder

    for path in records:
        encoder = load_encoder(path.parent)
        run, seed = run_and_seed(path)
        if not isinstance(encoder, SentenceEncoder):
            raise ConfigError(
                f"{path}: {run} is a sum of several encoders, or an encoder as it was published; the "
                "figure needs a single encoder with a readout. Remove this run from the figure."
            )
        yield run, seed, encoder


# Attention over layers


def _attends_to_layers(run: Any) -> bool:
    """Return whether a run pools with LayerAttPooler's attention."""
    readout: Any = getattr(run.method, "readout", None)
    return getattr(readout, "kind", "") == "layer_attention" and "attention" in readout.pooling


@partial(
    Declaration,
    title="Attention over layers: {title}",
    description="Maps of attention weights, a row per run, a column per sentence.",
    caption=(
        "Weights of the attention over layers of {experiment}, for single sentences, a map per run and sentence; "
        "means over seeds. A row is a layer whose [CLS] state queries, a column a layer whose average answers; 0 "
        "is the embedding output."
    ),
    reads={"models": MODELS},
    settings=LayerAttentionMaps,
    of_run=_attends_to_layers,
)
def layer_attention(request: FigureRequest[LayerAttentionMaps]) -> Drawn:
    """Draw the weights of LayerAttPooler's attention over layers."""
    models = single_encoders(request.inputs["models"])
    points = pd.concat([layer_weights(*model, request.config) for model in models], ignore_index=True)
    sides = ("query_layer", "key_layer", "key_layer")
    low, high = points["weight"].agg(["min", "max"])
    figure = draw_maps(points, "sentence", sides, "weight", low, high)
    note = "Rows: layers that query; columns: layers that answer, 0 the embedding output; means over seeds."
    return Drawn(points, figure, [note])


def layer_weights(
    run: str,
    seed: int,
    encoder: SentenceEncoder,
    config: LayerAttentionMaps,
) -> pd.DataFrame:
    """Return attention weights of every sentence in one run; layer 0 is the embedding output.

    With a softmax, the weights of a query sum to 1.
    """
    import torch

    from workflow_scripts.models.backbone import hidden_states
    from workflow_scripts.models.readouts.layer_attention import Readout
    from workflow_scripts.models.templates import tokenise_in

    readout = encoder.readout
    assert isinstance(readout, Readout)
    rows = []
    for sentence in config.sentences:
        tokens = tokenise_in(encoder.template, encoder.tokenizer, [sentence], config.max_tokens)
        batch = tokens.batch([0]).to(encoder.device)
        with torch.inference_mode():
            states = hidden_states(encoder.eval().backbone, batch, "all")
            (weights_LL,) = readout.attention(*readout.layers(states, batch.mask_BT))
        rows += [
            (run, seed, sentence, query, key, weight)
            for query, row in enumerate(weights_LL.double().tolist(), start=readout.lowest)
            for key, weight in enumerate(row, start=readout.lowest)
        ]
    return frame(
        rows, run="str", seed="int", sentence="str", query_layer="int", key_layer="int", weight="float"
    )


# Cosines between words


@partial(
    Declaration,
    title="How alike words are: {title}",
    description="Maps of cosines between the words of a sentence, a row per run, a column per sentence.",
    caption=(
        "Cosines between the states of words inside the encoder, for two sentences and some runs of {experiment}, "
        "a row of maps for each run; below them, the cosines of the two sentence vectors. No redundancy is "
        "subtracted here: the maps show the states that training left in the encoder (3R, Figures 1 and 3 and Table 4)."
    ),
    reads={"models": MODELS},
    settings=TokenSimilarity,
)
def token_similarity(request: FigureRequest[TokenSimilarity]) -> Drawn:
    """Draw cosines between the words of each of two sentences."""
    models = single_encoders(request.inputs["models"])
    points = pd.concat([word_cosines(*model, request.config) for model in models], ignore_index=True)
    sides = ("row_place", "column_place", "column_unit")
    figure = draw_maps(points, "sentence", sides, "cosine", points["cosine"].min(), 1, numbers_up_to=12)
    between = points.groupby("run", sort=False)["sentence_cosine"].mean().items()
    sentences = "; ".join(f"{run}: {value:.2f}" for run, value in between)
    return Drawn(points, figure, [f"Means over seeds. Cosines of the two sentences: {sentences}."])


def word_cosines(run: str, seed: int, encoder: SentenceEncoder, config: TokenSimilarity) -> pd.DataFrame:
    """Return cosines between the words of each sentence, with their positions from 0.

    ``sentence_cosine`` is the cosine of the run's vectors of the two sentences, the same in every row.
    """
    left, right = encoder.encode(config.sentences, config.max_tokens)
    between = float(cosine(left[None], right[None])[0])
    rows = []
    for sentence in config.sentences:
        names, cosines_WW = cosines_between_words(encoder, sentence, config.max_tokens)
        rows += [
            (run, seed, sentence, row, names[row], column, names[column], value, between)
            for row, values in enumerate(cosines_WW.tolist())
            for column, value in enumerate(values)
        ]
    return frame(
        rows, run="str", seed="int", sentence="str", row_place="int", row_unit="str", column_place="int",
        column_unit="str", cosine="float", sentence_cosine="float",
    )  # fmt: skip


def cosines_between_words(
    encoder: SentenceEncoder, sentence: str, max_tokens: int
) -> tuple[list[str], Tensor]:
    """Return the words of a sentence, and the cosines between the means of their last states, shape (W, W).

    The sentence is encoded without the encoder's template.
    """
    import torch

    from workflow_scripts.losses.infonce import cos_sim

    tokens = encoder.tokenizer(sentence, truncation=True, max_length=max_tokens, return_tensors="pt")
    backbone = encoder.backbone.train(False)
    with torch.inference_mode():
        states_TD = backbone(**tokens.to(backbone.device)).last_hidden_state[0].double()
    positions: dict[int, list[int]] = {}
    for position, word in enumerate(tokens.word_ids(0)):
        if word is not None:  # special tokens have none
            positions.setdefault(word, []).append(position)
    vectors_WD = torch.stack([states_TD[pieces].mean(dim=0) for pieces in positions.values()])
    spans = [tokens.word_to_chars(0, word) for word in positions]
    names = [sentence[span.start : span.end].strip() for span in spans]
    return names, cos_sim(vectors_WD, vectors_WD)
