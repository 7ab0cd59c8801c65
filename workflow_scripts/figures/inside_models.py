"""Heat maps of weights and states inside encoders, a row per run, a column per sentence; these figures load models.

One shows attention over layers (LayerAttPooler, Fig. 3), the other cosines between words (3R, Figs. 1 and 3 and
Table 4). 3R shows cosines of "token embeddings" and labels them with words, but says neither which layer it uses nor
how it treats words of several pieces. Both are settings; its axes suggest the last layer, from which sentence vectors
are computed, and means over a word's pieces.

Shape suffixes: T tokens, W words or pieces, D width, L layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import pandas as pd
from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.errors import ConfigError
from workflow_scripts.evaluation.correlation import cosine
from workflow_scripts.figures.base import MODELS, Declaration, Drawn, Request, frame
from workflow_scripts.figures.maps import draw_maps
from workflow_scripts.reporting.records import run_and_seed
from workflow_scripts.settings.names import Refers

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import BatchEncoding, PreTrainedTokenizerBase

    from workflow_scripts.models.encoder import SentenceEncoder


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
        bar="weight",
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

Unit = Literal["words", "pieces"]


class TokenSimilarity(Settings):
    """Settings of the maps of cosines between words (3R, Table 4 and Figs. 1 and 3)."""

    runs: Annotated[list[str], Refers("grid.runs")] = Field(
        min_length=1, max_length=6, description="Runs of the grid, each a single encoder."
    )
    sentences: list[str] = Field(min_length=2, max_length=2)
    layer: int = Field(description="Layer of the hidden states: -1 the last layer, 0 the embedding output.")
    unit: Unit = Field(description="Compare words, as means of their pieces, or the pieces.")
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
        names, cosines_WW = unit_cosines(encoder, tokenizer, sentence, config)
        rows += [
            (run, seed, sentence, row, names[row], column, names[column], value, between)
            for row, values in enumerate(cosines_WW.tolist())
            for column, value in enumerate(values)
        ]
    return frame(
        rows, run="str", seed="int", sentence="str", row_place="int", row_unit="str", column_place="int",
        column_unit="str", cosine="float", sentence_cosine="float",
    )  # fmt: skip


def unit_cosines(
    encoder: SentenceEncoder, tokenizer: PreTrainedTokenizerBase, sentence: str, config: TokenSimilarity
) -> tuple[list[str], Tensor]:
    """The words or pieces of a sentence, and the cosines between them, shape (W, W).

    The sentence is encoded without the encoder's template, if it has one.

    Raises:
        ConfigError: if the encoder does not have the layer.
    """
    import torch

    from workflow_scripts.losses.infonce import cosine_matrix

    tokens = tokenizer(sentence, truncation=True, max_length=config.max_tokens, return_tensors="pt")
    backbone = encoder.backbone.train(False)
    with torch.inference_mode():
        states = backbone(**tokens.to(backbone.device), output_hidden_states=True).hidden_states
    if not -len(states) <= config.layer < len(states):
        raise ConfigError(
            f"token_similarity.layer: {config.layer}; hidden states are 0 to {len(states) - 1}. Name one of these."
        )
    names, positions = words_or_pieces(tokens, tokenizer, sentence, config.unit)
    states_TD = states[config.layer][0].double()
    vectors_WD = torch.stack([states_TD[own].mean(dim=0) for own in positions])
    return names, cosine_matrix(vectors_WD, vectors_WD)


def words_or_pieces(
    tokens: BatchEncoding, tokenizer: PreTrainedTokenizerBase, sentence: str, unit: Unit
) -> tuple[list[str], Sequence[list[int]]]:
    """The words or pieces of one sentence, without special tokens, and the positions of each one's tokens."""
    words = tokens.word_ids(0)
    inside = [position for position, word in enumerate(words) if word is not None]
    if unit == "pieces":
        ids = tokens["input_ids"][0][inside].tolist()
        return list(tokenizer.convert_ids_to_tokens(ids)), [[position] for position in inside]
    groups = {word: list(own) for word, own in groupby(inside, key=lambda position: words[position])}
    spans = [tokens.word_to_chars(0, word) for word in groups]
    return [sentence[span.start : span.end].strip() for span in spans], list(groups.values())
