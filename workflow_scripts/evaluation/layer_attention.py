"""The weights of LayerAttPooler's attention over the layers of an encoder, for single sentences."""

from collections.abc import Sequence

import torch
from transformers import PreTrainedTokenizerBase

from workflow_scripts.models.encoder import SentenceEncoder, hidden_states
from workflow_scripts.models.readouts.layer_attention import Readout
from workflow_scripts.models.templates import tokenise_in


def layer_weights(
    encoder: SentenceEncoder, tokenizer: PreTrainedTokenizerBase, sentence: str, max_tokens: int
) -> tuple[int, Sequence[Sequence[float]]]:
    """The first layer that is attended to (0 is the embedding output), and the weights, (L, L)."""
    readout = encoder.readout
    assert isinstance(readout, Readout)
    batch = tokenise_in(encoder.template, tokenizer, [sentence], max_tokens).batch([0]).to(encoder.device)
    with torch.inference_mode():
        states = hidden_states(encoder.eval().backbone, batch, "all")
        weights_1LL = readout.attention(*readout.layers(states, batch.mask_BT))
    return readout.lowest, weights_1LL[0].double().tolist()
