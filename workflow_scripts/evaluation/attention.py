"""Properties of an encoder's attention: energy of the [CLS] token, and maps of attention weights.

    E_CLS = ||h_cls||_2 / ||H_-||_F

h_cls is the row of [CLS], and H_- are all other rows, of the context tensor: the values weighted by attention, heads
concatenated, before the output projection (JTCSE, Equation 6 and section VI-B). For T equal rows, the energy is
1/sqrt(T - 1). Encoders of the BERT family (BERT, RoBERTa, ELECTRA) are supported.

Shape suffixes: B sentences, T tokens, D width, H heads.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from workflow_scripts.columns.scores import ATTENTION
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.evaluation.scores import Score
from workflow_scripts.settings.suites.attention import Energy, Maps


def distinct_texts(table: pa.Table) -> list[str]:
    """The distinct texts of a table of sentences or pairs, first sides first."""
    columns = [name for name in ("sentence", "sentence1", "sentence2") if name in table.column_names]
    return list(dict.fromkeys(text for name in columns for text in table[name].to_pylist()))


def context_projections(model: nn.Module) -> list[nn.Module]:
    """Modules whose input is the context tensor of a self-attention layer, first layer first."""
    return [module for name, module in model.named_modules() if name.endswith("attention.output.dense")]


def cls_energy(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, sentences: Sequence[str], config: Energy
) -> list[Score]:
    """E_CLS averaged over sentences: one score per layer (``layer:1`` ...) and their ``mean``.

    Raises:
        DataError: if the model's self-attention layers are not supported.
    """
    projections = context_projections(model)
    if not projections:
        found = f"{type(model).__name__}: no layer named attention.output.dense"
        raise DataError(f"{found}. E_CLS needs an encoder of the BERT family.")
    sentences = sentences[: config.max_sentences]
    energies = []
    model.train(False)
    for start in range(0, len(sentences), config.batch_size):
        batch = list(sentences[start : start + config.batch_size])
        cut = {"truncation": True, "max_length": config.max_tokens}
        tokens = tokenizer(batch, padding=True, return_tensors="pt", **cut).to(model.device)
        with torch.inference_mode(), _captured_inputs(projections) as contexts:
            model(**tokens)
            energies.append(torch.stack([energy(context, tokens["attention_mask"]) for context in contexts]))
    per_layer = torch.cat(energies, dim=1).mean(dim=1).tolist()
    names = [f"layer:{layer}" for layer in range(1, len(per_layer) + 1)]
    values = [*zip(names, per_layer, strict=True), ("mean", float(np.mean(per_layer)))]
    return [Score(config.dataset, name, "cls_energy", value, len(sentences)) for name, value in values]


def cls_energy_of_sub_encoders(
    models: Sequence[PreTrainedModel],
    tokenizer: PreTrainedTokenizerBase,
    sentences: Sequence[str],
    config: Energy,
) -> list[Score]:
    """``cls_energy`` averaged over the encoders of an ensemble, layer by layer, or that of a single encoder."""
    by_sub_encoder = [cls_energy(model, tokenizer, sentences, config) for model in models]
    return [
        scores[0]._replace(value=float(np.mean([score.value for score in scores if score.value is not None])))
        for scores in zip(*by_sub_encoder, strict=True)
    ]


def energy(context_BTD: Tensor, mask_BT: Tensor) -> Tensor:
    """E_CLS of each sentence, shape (B,), float64; padding is ignored."""
    squares_BT = context_BTD.double().square().sum(dim=-1) * mask_BT
    return (squares_BT[:, 0] / squares_BT[:, 1:].sum(dim=1)).sqrt()


@contextmanager
def _captured_inputs(modules: Sequence[nn.Module]) -> Iterator[list[Tensor]]:
    captured: list[Tensor] = []

    def capture(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        captured.append(inputs[0])

    hooks = [module.register_forward_pre_hook(capture) for module in modules]
    try:
        yield captured
    finally:
        for hook in hooks:
            hook.remove()


def attention_maps(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, config: Maps) -> pa.Table:
    """Attention weights of every head, with the columns of ``columns.scores.ATTENTION``.

    Raises:
        ConfigError: if the model does not have one of the layers.
    """
    count = model.config.num_hidden_layers
    if outside := [layer for layer in config.layers if not 1 <= layer <= count]:
        raise ConfigError(f"attention.layers: no layer {outside[0]}; the encoder has layers 1 to {count}.")
    with torch.inference_mode(), _eager(model):
        parts = [
            _map_table(sentence, layer, tokens, weights)
            for sentence in config.sentences
            for tokens, layers in [_attend(model, tokenizer, sentence, config.max_tokens)]
            for layer, weights in [(layer, layers[layer - 1]) for layer in config.layers]
        ]
    return pa.concat_tables(parts)


def attention_maps_of_sub_encoders(
    models: Sequence[PreTrainedModel], tokenizer: PreTrainedTokenizerBase, config: Maps
) -> pa.Table:
    """``attention_maps`` of all encoders of an ensemble, with their heads numbered consecutively."""
    tables, heads = [], 0
    for model in models:
        table = attention_maps(model, tokenizer, config)
        place = table.schema.get_field_index("head")
        numbers = pc.add(table["head"], pa.scalar(heads, pa.int32()))
        tables.append(table.set_column(place, table.schema.field(place), numbers))
        heads += model.config.num_attention_heads
    return pa.concat_tables(tables)


@contextmanager
def _eager(model: PreTrainedModel) -> Iterator[None]:
    """Let the model return attention weights, which its faster kernels never form."""
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(before)


def _attend(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, sentence: str, max_tokens: int
) -> tuple[list[str], tuple[Tensor, ...]]:
    tokens = tokenizer(sentence, truncation=True, max_length=max_tokens, return_tensors="pt").to(model.device)
    layers = model.train(False)(**tokens, output_attentions=True).attentions
    return [
        str(tokenizer.convert_ids_to_tokens(number)) for number in tokens["input_ids"][0].tolist()
    ], layers


def _map_table(sentence: str, layer: int, tokens: list[str], weights_1HTT: Tensor) -> pa.Table:
    weights = weights_1HTT[0].double().cpu().numpy()
    head, query, key = (index.ravel().astype(np.int32) for index in np.indices(weights.shape))
    names = np.array(tokens, dtype=object)
    rows = weights.size
    columns = [
        pa.array([sentence] * rows),
        pa.array(np.full(rows, layer, dtype=np.int32)),
        pa.array(head),
        pa.array(query),
        pa.array(names[query]),
        pa.array(key),
        pa.array(names[key]),
        pa.array(weights.ravel()),
    ]
    return pa.table(columns, schema=ATTENTION)
