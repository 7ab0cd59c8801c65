"""What LayerAttPooler's attention makes of single sentences: its weights over the layers of an encoder."""

from collections.abc import Sequence

import pyarrow as pa
import torch
from pydantic import Field
from transformers import PreTrainedTokenizerBase

from workflow_scripts.config import Slice
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.readouts import PortableReadout
from workflow_scripts.models.templates import tokenise_in
from workflow_scripts.schemas import LAYER_ATTENTION


class Config(Slice):
    """Which sentences are drawn."""

    sentences: list[str] = Field(
        min_length=1, max_length=4, description="Each on its own, so nothing is padded."
    )
    max_tokens: int = Field(gt=2, description="Longer sentences are cut; [CLS] and [SEP] count.")


def layer_weights(
    run: str, seed: int, encoder: SentenceEncoder, tokenizer: PreTrainedTokenizerBase, config: Config
) -> pa.Table:
    """Attention weights of every sentence, columns of ``schemas.LAYER_ATTENTION``."""
    parts = [_of_sentence(encoder, tokenizer, sentence, config.max_tokens) for sentence in config.sentences]
    rows = [
        {
            "run": run,
            "seed": seed,
            "sentence": sentence,
            "query_layer": query,
            "key_layer": key,
            "weight": weight,
        }
        for sentence, (lowest, weights) in zip(config.sentences, parts, strict=True)
        for query, row in enumerate(weights, start=lowest)
        for key, weight in enumerate(row, start=lowest)
    ]
    return pa.Table.from_pylist(rows, schema=LAYER_ATTENTION)


def _of_sentence(
    encoder: SentenceEncoder, tokenizer: PreTrainedTokenizerBase, sentence: str, max_tokens: int
) -> tuple[int, Sequence[Sequence[float]]]:
    """The first layer that takes part (0 is the embedding output), and the weights, (L, L)."""
    assert isinstance(encoder.readout, PortableReadout)
    core = encoder.readout.core
    batch = tokenise_in(encoder.template, tokenizer, [sentence], max_tokens).batch([0]).to(encoder.device)
    with torch.inference_mode():
        states = encoder.eval().hidden_states(batch.ids_BT, batch.mask_BT)
        weights_1LL = core.attention(*core.layers(states, batch.mask_BT))  # type: ignore[operator]
    return int(core.lowest), weights_1LL[0].double().tolist()  # type: ignore[arg-type]
