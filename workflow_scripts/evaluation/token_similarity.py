"""How similar an encoder makes the words of a sentence, and two sentences (3R, Figs. 1 and 3 and Table 4).

The paper shows cosines of "token embeddings" and names words; it says neither which layer is used nor what is done
with words of several pieces. Both are settings; the figures' axes suggest the last layer, from which sentence vectors
are computed, and the mean over a word's pieces.

Shape suffixes: T tokens, W words or pieces, D width.
"""

from collections.abc import Sequence
from itertools import groupby

import torch
from torch import Tensor
from transformers import BatchEncoding, PreTrainedTokenizerBase

from workflow_scripts.errors import ConfigError
from workflow_scripts.losses.infonce import cosine_matrix
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.settings.figures.token_similarity import Unit


def unit_cosines(
    encoder: SentenceEncoder,
    tokenizer: PreTrainedTokenizerBase,
    sentence: str,
    *,
    layer: int,
    unit: Unit,
    max_tokens: int,
) -> tuple[list[str], Tensor]:
    """The words or pieces of a sentence, and the cosines between them, shape (W, W).

    The sentence is encoded without the encoder's template, if it has one.

    Args:
        encoder: The encoder whose states are compared.
        tokenizer: Its tokeniser.
        sentence: A sentence, truncated to ``max_tokens``.
        layer: Hidden states: -1 the last layer, 0 the embedding output.
        unit: Words, as means of their pieces, or pieces.
        max_tokens: Largest number of tokens, including [CLS] and [SEP].

    Raises:
        ConfigError: if there is no such layer.
    """
    tokens = tokenizer(sentence, truncation=True, max_length=max_tokens, return_tensors="pt")
    backbone = encoder.backbone.train(False)
    with torch.inference_mode():
        states = backbone(**tokens.to(backbone.device), output_hidden_states=True).hidden_states
    if not -len(states) <= layer < len(states):
        raise ConfigError(f"token_similarity.layer: {layer}; hidden states are 0 to {len(states) - 1}.")
    names, places = units_of(tokens, tokenizer, sentence, unit)
    vectors_WD = unit_vectors(states[layer][0].double(), places)
    return names, cosine_matrix(vectors_WD, vectors_WD)


def units_of(
    tokens: BatchEncoding, tokenizer: PreTrainedTokenizerBase, sentence: str, unit: Unit
) -> tuple[list[str], list[list[int]]]:
    """The words or pieces of one sentence, without special tokens, and the tokens that each consists of."""
    words = tokens.word_ids(0)
    inside = [place for place, word in enumerate(words) if word is not None]
    if unit == "pieces":
        ids = tokens["input_ids"][0][inside].tolist()
        return list(tokenizer.convert_ids_to_tokens(ids)), [[place] for place in inside]
    groups = {word: list(places) for word, places in groupby(inside, key=lambda place: words[place])}
    spans = [tokens.word_to_chars(0, word) for word in groups]
    return [sentence[span.start : span.end].strip() for span in spans], list(groups.values())


def unit_vectors(states_TD: Tensor, tokens: Sequence[Sequence[int]]) -> Tensor:
    """Means of the states of each unit's tokens, shape (W, D)."""
    return torch.stack([states_TD[list(places)].mean(dim=0) for places in tokens])
