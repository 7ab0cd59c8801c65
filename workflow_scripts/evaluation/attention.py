"""Properties of an encoder's attention: energy of the [CLS] token, and maps of attention weights.

    E_CLS = ||h_cls||_2 / ||H_-||_F

h_cls is the row of [CLS], and H_- are all other rows, of the context tensor: the values weighted by attention, heads
concatenated, before the output projection (JTCSE, Equation 6 and section VI-B). For T equal rows, the energy is
1/sqrt(T - 1). Encoders of the BERT family (BERT, RoBERTa, ELECTRA) are supported.

Shape suffixes: B sentences, T tokens, D width, H heads.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from workflow_scripts.columns import ATTENTION
from workflow_scripts.data.tables import read_dataset_table, texts_of
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.evaluation.base import Score, gap, score_table
from workflow_scripts.evaluation.recording import context_projections, recorded_inputs
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.suites import Attention as Config
from workflow_scripts.settings.suites import Energy, StoredMaps


def cls_energy(
    models: Sequence[PreTrainedModel],
    tokenizer: PreTrainedTokenizerBase,
    sentences: Sequence[str],
    config: Energy,
) -> list[Score]:
    """Return E_CLS averaged over sentences and over the encoders of an ensemble.

    Returns:
        One score per layer (``layer:1`` ...) and their ``mean``.

    Raises:
        DataError: if a model's self-attention layers are not supported.
    """
    sentences = sentences[: config.max_sentences]
    layers_ML = [_layer_energies(model, tokenizer, sentences, config) for model in models]
    by_model = [[*per_layer, float(np.mean(per_layer))] for per_layer in layers_ML]
    names = [*(f"layer:{layer}" for layer in range(1, len(layers_ML[0]) + 1)), "mean"]
    return [
        Score(config.dataset, name, "cls_energy", float(np.mean(values)), len(sentences))
        for name, values in zip(names, zip(*by_model, strict=True), strict=True)
    ]


def _layer_energies(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, sentences: Sequence[str], config: Energy
) -> list[float]:
    projections = context_projections(model)
    if not projections:
        problem = f"{type(model).__name__}: no layer named attention.output.dense"
        raise DataError(f"{problem}. E_CLS needs an encoder of the BERT family.")
    energies = []
    model.train(False)
    for start in range(0, len(sentences), config.batch_size):
        batch = list(sentences[start : start + config.batch_size])
        limit = {"truncation": True, "max_length": config.max_tokens}
        padding = {"padding": True, "padding_side": "right"}  # [CLS] is at position 0
        tokens = tokenizer(batch, return_tensors="pt", **limit, **padding).to(model.device)
        with torch.inference_mode(), recorded_inputs(projections) as calls:
            model(**tokens)
            energies.append(torch.stack([energy(context, tokens["attention_mask"]) for _, context in calls]))
    means: list[float] = torch.cat(energies, dim=1).mean(dim=1).tolist()
    return means


def energy(context_BTD: Tensor, mask_BT: Tensor) -> Tensor:
    """Return E_CLS of each sentence, shape (B,), float64; padding is ignored."""
    squares_BT = context_BTD.double().square().sum(dim=-1) * mask_BT
    return (squares_BT[:, 0] / squares_BT[:, 1:].sum(dim=1)).sqrt()


def attention_maps(
    models: Sequence[PreTrainedModel], tokenizer: PreTrainedTokenizerBase, config: StoredMaps
) -> pa.Table:
    """Return the attention weights of every head, with the columns of ``columns.ATTENTION``.

    The heads of an ensemble's encoders are numbered consecutively. The encoders are switched to eager attention and
    stay so: faster kernels never compute the weights.

    Raises:
        ConfigError: if a model does not have one of the layers.
    """
    parts, heads = [], 0
    for model in models:
        count = model.config.num_hidden_layers
        if outside := [layer for layer in config.layers if not 1 <= layer <= count]:
            raise ConfigError(f"attention.layers: no layer {outside[0]}. Choose from: 1 to {count}.")
        model.train(False).set_attn_implementation("eager")
        for sentence in config.sentences:
            limit = {"truncation": True, "max_length": config.max_tokens}
            tokens = tokenizer(sentence, return_tensors="pt", **limit).to(model.device)
            with torch.inference_mode():
                weights = model(**tokens, output_attentions=True).attentions
            names = list(tokenizer.convert_ids_to_tokens(tokens["input_ids"][0].tolist()))
            parts += [
                _map_table(sentence, layer, heads, names, weights[layer - 1][0]) for layer in config.layers
            ]
        heads += model.config.num_attention_heads
    return pa.concat_tables(parts)


def _map_table(sentence: str, layer: int, heads: int, tokens: list[str], weights_HTT: Tensor) -> pa.Table:
    """Return the map of one layer; ``heads`` is the number of its first head."""
    weights = weights_HTT.double().cpu().numpy()
    head, query, key = (index.ravel().astype(np.int32) for index in np.indices(weights.shape))
    names = np.array(tokens, dtype=object)
    columns = [
        pa.repeat(sentence, weights.size),
        pa.repeat(pa.scalar(layer, pa.int32()), weights.size),
        head + np.int32(heads),
        query,
        names[query],
        key,
        names[key],
        weights.ravel(),
    ]
    return pa.table(columns, schema=ATTENTION)


def map_attention(job: Job) -> None:
    """Write one run's attention weights over configured sentences, and energy of [CLS] (rule map_attention)."""
    config = Config.parse(job.settings["suite"], f"suites.attention.{job.wildcards['suite']}")
    encoder = load_encoder(job.input("model").parent)
    if not encoder.reads_one_vocabulary:
        raise ConfigError(
            f"suites: {job.wildcards['run']} joins encoders with several tokenisers. Remove attention "
            "from the suites of its grid."
        )
    sentences = list(dict.fromkeys(texts_of(read_dataset_table(job.input("dataset")))))
    backbones = encoder.backbones
    if sentences:
        scores = cls_energy(backbones, encoder.tokenizer, sentences, config.energy)
        note = "sentences without the encoder's template" if encoder.template else None
        scores = [score._replace(note=note) for score in scores]
    else:
        scores = [gap(config.energy.dataset, "no source of the dataset is available")]
    maps = attention_maps(backbones, encoder.tokenizer, config.maps)
    job.write({"scores": score_table(scores, **job.wildcards), "maps": maps})
