"""Heat maps, a row for each run: attention between tokens and over layers, and cosines between words.

Attention weights of one sentence are JTCSE's Figure 9, attention over layers LayerAttPooler's Figure 3, and cosines
between words 3R's Figures 1 and 3 and Table 4; the last two load models. 3R shows cosines of "token embeddings" and
labels them with words, but says neither which layer it uses nor how it treats words of several pieces. ASSUME: the
last layer, from which sentence vectors are computed, and means over a word's pieces, as its axes suggest.

Shape suffixes: T tokens, W words or pieces, D width, L layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from workflow_scripts.columns import ATTENTION
from workflow_scripts.config import Settings
from workflow_scripts.errors import ConfigError
from workflow_scripts.evaluation.correlation import cosine
from workflow_scripts.figures.base import (
    MODELS,
    Declaration,
    Drawn,
    Figure,
    Request,
    colour_bar,
    draw_map,
    frame,
    heading,
    shades,
    short_names,
    upright,
)
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.reporting.records import run_and_seed, wildcard
from workflow_scripts.settings.names import Refers

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedTokenizerBase

    from workflow_scripts.models.encoder import SentenceEncoder

_BAR_WIDTH = 0.05  # in widths of a map


def draw_maps(
    request: Request[Any],
    points: pd.DataFrame,
    panel: str,
    sides: tuple[str, str, str],
    value: str,
    inches: float,
    note: str,
    *,
    scale: tuple[float | None, float | None] = (None, None),
    suffixes: Mapping[str, str] = MappingProxyType({}),
    numbers_up_to: int = 0,
) -> Figure:
    """Draw a row of maps for each run: means over all columns that are not named here, darker for more, on one scale.

    Args:
        request: Texts and style of the figure.
        points: A row for each number, with its ``run``.
        panel: Column whose values distinguish a run's maps, and are their titles.
        sides: Columns with the row and the column of a number in its map, and with the label of both.
        value: Column of the numbers, and label of the colour bar.
        inches: Height of a row of maps.
        note: How the maps are drawn.
        scale: Ends of the scale; None for the smallest or largest number.
        suffixes: Text after a run's name.
        numbers_up_to: Maps of at most this size show their numbers.
    """
    row, column, label = sides
    groups = points.groupby(["run", panel], sort=False)
    maps = {key: group.pivot_table(value, row, column, fill_value=0) for key, group in groups}
    labels = points.groupby(["run", panel, column])[label].first()
    names = short_names(list(points["run"].unique()))
    titles = list(points[panel].unique())
    runs, widths = len(names.short), [1.0] * len(titles) + [_BAR_WIDTH]
    figure, panels = request.new_figure(
        inches * runs, [note, *names.footnotes], runs, len(widths), width_ratios=widths
    )
    low, high = scale
    low = min(numbers.to_numpy().min() for numbers in maps.values()) if low is None else low
    high = max(numbers.to_numpy().max() for numbers in maps.values()) if high is None else high
    colours = shades("cividis_r", low, high)
    for run_panels, (run, name) in zip(panels, names.short.items(), strict=True):
        for axes, title in zip(run_panels, titles, strict=False):
            if (run, title) in maps:
                numbers, own = maps[run, title], list(labels[run, title])
                annotation = numbers.map(_short_number) if len(own) <= numbers_up_to else None
                draw_map(axes, numbers, own, own, norm=colours.norm, cmap=colours.cmap, annot=annotation, fmt="",
                         annot_kws={"size": 6.5})  # fmt: skip
                axes.tick_params(length=0)
                axes.set(xlabel="", ylabel="")
            else:
                axes.set_axis_off()
        run_panels[0].set_ylabel(upright(f"{name}{suffixes.get(run, '')}", inches))
    for axes, title in zip(panels[0], titles, strict=False):
        axes.set_title(heading(title, len(titles)), fontsize="small")
    for axes in panels[:, -1]:
        axes.remove()
    bar_axes = figure.add_subplot(panels[0, 0].get_gridspec()[:, -1])
    colour_bar(figure, colours, value, cax=bar_axes)
    return figure


def _short_number(number: float) -> str:
    return f"{number:z.2f}".replace("0.", ".", 1)


# Attention weights

_PANEL_INCHES = 1.9
_TOKEN_INCHES, _AROUND_INCHES = 0.095, 0.6  # parts of a map's height: one row; title and labels
_KEYS = {
    "run": "str", "layer": "int",
    "query_position": "int", "query_token": "str", "key_position": "int", "key_token": "str",
}  # fmt: skip


class AttentionMaps(Settings):
    """Settings of the attention maps."""

    layers: list[int] = Field(
        min_length=1, max_length=6, description="Layers, from 1; a run's maps are of those that it has."
    )


@partial(
    Declaration,
    title="Where tokens attend: {title}",
    description="Maps of attention weights of one sentence, a row per run, a column per layer; darker is more.",
    caption=(
        "Attention weights of one sentence in every run of {experiment}, averaged over heads, seeds and, in an "
        "ensemble, encoders: a row of maps for each run, a column for each layer. A dark column at the last tokens "
        "is the attention sink of JTCSE's Figure 9."
    ),
    reads={"maps": "<results>/scores/attention/{suite}/{run}/seed{seed}.maps.parquet"},
    settings=AttentionMaps,
    block="report.attention_maps",
)
def attention_maps(request: Request[AttentionMaps]) -> Drawn:
    """Draw attention weights of one sentence, a row for each query and a column for each key."""
    tables = ((wildcard(path, "run"), read_table(path, ATTENTION)) for path in request.inputs["maps"])
    points = mean_weights(tables, request.config)
    if not len(points):
        return Drawn(points, request.empty("No attention weights were kept."))
    height = max(_PANEL_INCHES, _AROUND_INCHES + _TOKEN_INCHES * (points["key_position"].max() + 1))
    in_order = points.sort_values("layer", kind="stable")
    figure = draw_maps(
        request,
        in_order.assign(panel="layer " + in_order["layer"].astype(str)),
        "panel",
        ("query_position", "key_position", "key_token"),
        "weight",
        height,
        "Rows: tokens that attend; columns: tokens that are attended to; means over heads, seeds and encoders.",
        scale=(0, 1),
    )
    for axes in figure.axes:
        axes.tick_params(labelsize="x-small")
    return Drawn(points, figure)


def mean_weights(tables: Iterable[tuple[str, pa.Table]], config: AttentionMaps) -> pd.DataFrame:
    """Weights of the first sentence in some layers, means over heads, seeds and encoders.

    Args:
        tables: Runs, each with a table of ``columns.ATTENTION``.
        config: The layers.
    """
    parts = [frame([], **_KEYS, weight="float")]
    for run, table in tables:
        first = pc.field("sentence") == table["sentence"][0]
        parts.append(table.filter(first & pc.field("layer").isin(config.layers)).to_pandas().assign(run=run))
    means = pd.concat(parts).groupby([*_KEYS], sort=False)["weight"].mean()
    return means.reset_index().astype(_KEYS)


# Inside models


def single_encoders(
    records: Iterable[Path],
) -> Iterator[tuple[str, int, SentenceEncoder, PreTrainedTokenizerBase]]:
    """Load models one after another; yields run, seed, encoder and tokenizer.

    Raises:
        ConfigError: if a model consists of several encoders.
    """
    from workflow_scripts.models.encoder import SentenceEncoder
    from workflow_scripts.models.folders import load_encoder

    for path in records:
        encoder, tokenizer = load_encoder(path.parent)
        run, seed = run_and_seed(path)
        if not isinstance(encoder, SentenceEncoder):
            raise ConfigError(
                f"{path}: {run} is a sum of several encoders, or an encoder as it was published; the figure needs "
                "a single encoder with a readout. Name another run."
            )
        yield run, seed, encoder, tokenizer


# Attention over layers


class LayerAttention(Settings):
    """Settings of the maps of attention over layers."""

    sentences: list[str] = Field(
        min_length=1,
        max_length=4,
        description="Sentences to draw; each is a batch of its own, without padding.",
    )
    max_tokens: int = Field(gt=2, description="Longer sentences are cut; [CLS] and [SEP] count.")


@partial(
    Declaration,
    title="Attention over layers: {title}",
    description="Maps of attention weights, a row per run, a column per sentence; darker is more.",
    caption=(
        "Weights of the attention over layers of {experiment}, for single sentences, a map per run and sentence; "
        "means over seeds. A row is a layer whose [CLS] state queries, a column a layer whose average answers; 0 "
        "is the embedding output."
    ),
    reads={"models": MODELS},
    settings=LayerAttention,
    block="report.layer_attention",
    method={"readout.kind": "layer_attention", "readout.pooling": "*attention*"},
)
def layer_attention(request: Request[LayerAttention]) -> Drawn:
    """Draw the weights of LayerAttPooler's attention over layers."""
    models = single_encoders(request.inputs["models"])
    points = pd.concat([layer_weights(*model, request.config) for model in models], ignore_index=True)
    figure = draw_maps(
        request,
        points,
        "sentence",
        ("query_layer", "key_layer", "key_layer"),
        "weight",
        2.4,
        "Rows: layers that query; columns: layers that answer, 0 the embedding output; means over seeds.",
    )
    return Drawn(points, figure)


def layer_weights(
    run: str, seed: int, encoder: SentenceEncoder, tokenizer: PreTrainedTokenizerBase, config: LayerAttention
) -> pd.DataFrame:
    """Attention weights of every sentence in one run; layer 0 is the embedding output.

    With a softmax, the weights of a query sum to 1.
    """
    import torch

    from workflow_scripts.models.encoder import hidden_states
    from workflow_scripts.models.readouts.layer_attention import Readout
    from workflow_scripts.models.templates import tokenise_in

    readout = encoder.readout
    assert isinstance(readout, Readout)
    rows = []
    for sentence in config.sentences:
        tokens = tokenise_in(encoder.template, tokenizer, [sentence], config.max_tokens)
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


class TokenSimilarity(Settings):
    """Settings of the maps of cosines between words (3R, Table 4 and Figs. 1 and 3)."""

    runs: Annotated[list[str], Refers("grid.runs")] = Field(
        min_length=1, max_length=6, description="Runs of the grid, each a single encoder."
    )
    sentences: list[str] = Field(min_length=2, max_length=2)
    max_tokens: int = Field(gt=2, description="Longer sentences are cut; [CLS] and [SEP] count.")


@partial(
    Declaration,
    title="How alike words are: {title}",
    description="Maps of cosines between the words of a sentence, a row per run, a column per sentence.",
    caption=(
        "Cosines between the states of words inside the encoder, for two sentences and some runs of {experiment}, "
        "a row of maps for each run; at the left, the cosine of the two sentence vectors. No redundancy is "
        "subtracted here: the maps show the states that training left in the encoder (3R, Figures 1 and 3 and Table 4)."
    ),
    reads={"models": MODELS},
    settings=TokenSimilarity,
    block="grids.{experiment}.token_similarity",
)
def token_similarity(request: Request[TokenSimilarity]) -> Drawn:
    """Draw cosines between the words of each of two sentences."""
    models = single_encoders(request.inputs["models"])
    points = pd.concat([word_cosines(*model, request.config) for model in models], ignore_index=True)
    between = points.groupby("run")["sentence_cosine"].mean()
    figure = draw_maps(
        request,
        points,
        "sentence",
        ("row_place", "column_place", "column_unit"),
        "cosine",
        3.1,
        "Cosines between words, means over seeds; at the left, the cosine of the two sentences.",
        scale=(None, 1),
        suffixes={run: f", sentences: {value:z.2f}" for run, value in between.items()},
        numbers_up_to=12,  # words; with more of them, numbers would overlap
    )
    return Drawn(points, figure)


def word_cosines(
    run: str, seed: int, encoder: SentenceEncoder, tokenizer: PreTrainedTokenizerBase, config: TokenSimilarity
) -> pd.DataFrame:
    """Cosines between the words of each sentence, with their positions from 0.

    ``sentence_cosine`` is the cosine of the run's vectors of the two sentences, the same in every row.
    """
    from workflow_scripts.models.encoding import encode

    left, right = encode(encoder, tokenizer, config.sentences, config.max_tokens)
    between = float(cosine(left[None], right[None])[0])
    rows = []
    for sentence in config.sentences:
        names, cosines_WW = cosines_between_words(encoder, tokenizer, sentence, config.max_tokens)
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
    encoder: SentenceEncoder, tokenizer: PreTrainedTokenizerBase, sentence: str, max_tokens: int
) -> tuple[list[str], Tensor]:
    """The words of a sentence, and the cosines between the means of their last states, shape (W, W).

    The sentence is encoded without the encoder's template, if it has one.
    """
    import torch

    from workflow_scripts.losses.infonce import cosine_matrix

    tokens = tokenizer(sentence, truncation=True, max_length=max_tokens, return_tensors="pt")
    backbone = encoder.backbone.train(False)
    with torch.inference_mode():
        states_TD = backbone(**tokens.to(backbone.device)).last_hidden_state[0].double()
    positions: dict[int, list[int]] = {}
    for position, word in enumerate(tokens.word_ids(0)):
        if word is not None:  # as special tokens have
            positions.setdefault(word, []).append(position)
    vectors_WD = torch.stack([states_TD[own].mean(dim=0) for own in positions.values()])
    spans = [tokens.word_to_chars(0, word) for word in positions]
    names = [sentence[span.start : span.end].strip() for span in spans]
    return names, cosine_matrix(vectors_WD, vectors_WD)
