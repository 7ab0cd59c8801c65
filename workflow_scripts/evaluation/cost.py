"""Cost of an encoder: parameters, multiply-accumulates, latency, throughput.

Parameters and multiply-accumulates are exact and repeatable. Times are neither, so a separate function measures them
for a separate file. An encoder is timed alternately with its base encoder in one process, under the same conditions;
the ratio is the number to quote.

Multiply-accumulates are counted per module during a forward pass: in x out for every row that enters a linear layer
(``gmac_linear``, as counted by thop), and 2 T^2 D per sentence for every self-attention layer of the BERT family
(included in ``gmac_total``). Embedding look-ups, softmax, normalisation and activations are not counted.

Shape suffixes: B sentences, T tokens.
"""

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from workflow_scripts.evaluation.base import Score, score_table
from workflow_scripts.evaluation.recording import context_projections, recorded_inputs
from workflow_scripts.models.backbone import hidden_states, load_backbone
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.models.packed import unpacked
from workflow_scripts.models.tokens import TokenBatch
from workflow_scripts.provenance.artefacts import write_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.suites import Cost as Config

Forward = Callable[[Tensor, Tensor], object]
"""A complete pass from token ids and mask, both of shape (B, T), to sentence vectors, which are ignored."""
Encoder = tuple[nn.Module, Forward]


class Operations(NamedTuple):
    """Multiply-accumulates of one forward pass."""

    linear: int
    attention: int


def evaluate(config: Config, encoder: Encoder, base: Encoder) -> list[Score]:
    """Return parameters and multiply-accumulates of an encoder and its base encoder (aggregation ``base``).

    Returns:
        ``parameters``, 10^9 multiply-accumulates for one sentence of ``config.tokens`` tokens, and the encoder's
        additional parameters in percent of the base encoder's.
    """
    task, note = "cost", f"one sentence of {config.tokens} tokens"
    scores, counts = [], []
    for aggregation, (module, forward) in (("", encoder), ("base", base)):
        operations = count_operations(module, forward, config.tokens)
        counts.append(count_parameters(module))
        scores += [
            Score(task, aggregation, "parameters", float(counts[-1]), 1),
            Score(task, aggregation, "gmac_linear", operations.linear / 1e9, 1, note),
            Score(task, aggregation, "gmac_total", sum(operations) / 1e9, 1, note),
        ]
    return [*scores, Score(task, "", "added_parameters_percent", 100 * (counts[0] / counts[1] - 1), 1)]


def run_backbone(backbone: PreTrainedModel, ids_BT: Tensor, mask_BT: Tensor) -> object:
    """Run one pass of an encoder without pooler or head."""
    return hidden_states(backbone, TokenBatch(ids_BT, mask_BT), "last")


def count_parameters(module: nn.Module) -> int:
    """Return the number of parameters; parameters that modules share are counted once."""
    return sum(parameter.numel() for parameter in module.parameters())


def count_operations(module: nn.Module, forward: Forward, tokens: int) -> Operations:
    """Return the multiply-accumulates of one forward pass over a sentence of ``tokens`` tokens.

    This also works on the meta device, without computation, if the pass reads no value of a tensor.
    """
    layers = [layer for layer in module.modules() if isinstance(layer, nn.Linear)]
    with (
        torch.inference_mode(),
        unpacked(),
        recorded_inputs(layers) as rows,
        recorded_inputs(context_projections(module)) as contexts,
    ):
        forward(*_batch(module, 1, tokens))
    shapes = [context.shape for _, context in contexts]
    # Attention: queries by keys, then weights by values.
    return Operations(
        linear=sum(row.numel() * layer.out_features for layer, row in rows),
        attention=sum(2 * sentences * length**2 * width for sentences, length, width in shapes),
    )


def time_against_base(config: Config, encoder: Encoder, base: Encoder) -> list[Score]:
    """Return times of an encoder and its base encoder, measured alternately on the CPU; they differ between runs.

    Returns:
        For each batch size (aggregation ``batch:32``): median ``latency_ms`` of a batch, ``sentences_per_second``, the
        base encoder's ``base_latency_ms``, ``latency_ratio``, the median over repeats of the encoder's time divided by
        the base encoder's time next to it, and ``added_latency_percent``, the excess of that ratio over 1.
    """
    scores = []
    for batch_size in config.batch_sizes:
        ours, bases = _interleaved_seconds(config, batch_size, encoder, base)
        ratio = median(mine / theirs for mine, theirs in zip(ours, bases, strict=True))
        values = {
            "latency_ms": 1000 * median(ours),
            "sentences_per_second": batch_size / median(ours),
            "base_latency_ms": 1000 * median(bases),
            "latency_ratio": ratio,
            "added_latency_percent": 100 * (ratio - 1),
        }
        note = f"{config.tokens} tokens, cpu, {torch.get_num_threads()} threads"
        batch = f"batch:{batch_size}"
        scores += [
            Score("cost", batch, metric, value, config.repeats, note) for metric, value in values.items()
        ]
    return scores


def _interleaved_seconds(
    config: Config, batch_size: int, encoder: Encoder, base: Encoder
) -> tuple[list[float], list[float]]:
    seconds: tuple[list[float], list[float]] = ([], [])
    runs = [
        (forward, _batch(module.eval(), batch_size, config.tokens)) for module, forward in (encoder, base)
    ]
    with torch.inference_mode():
        for repeat in range(config.warmup + config.repeats):
            for index in (0, 1) if repeat % 2 else (1, 0):  # each encoder is first in half of the repeats
                forward, batch = runs[index]
                start = time.perf_counter()
                forward(*batch)
                if repeat >= config.warmup:
                    seconds[index].append(time.perf_counter() - start)
    return seconds


def _batch(module: nn.Module, batch_size: int, tokens: int) -> tuple[Tensor, Tensor]:
    """Return token ids 0 to 999, repeated, and a mask without padding; costs do not depend on the ids."""
    device = next(module.parameters()).device
    ids_BT = (torch.arange(batch_size * tokens) % 1000).view(batch_size, tokens).to(device)
    return ids_BT, torch.ones_like(ids_BT)


def evaluate_cost(job: Job) -> None:
    """Measure the costs of one run, compared with the encoder from which it started (rule evaluate_cost)."""
    config = Config.parse(job.settings["suite"], f"suites.cost.{job.wildcards['suite']}")
    encoder = load_encoder(job.input("model").parent)
    record = job.record()
    backbone = load_backbone(job.input("base").parent)
    ours = (encoder, encoder)
    base = (backbone, partial(run_backbone, backbone))
    scores, times = evaluate(config, ours, base), time_against_base(config, ours, base)
    write_table(job.outputs["scores"], score_table(scores, **job.wildcards), record)
    times_file = job.outputs["times"]  # times differ between runs
    times_file.parent.mkdir(parents=True, exist_ok=True)
    times_record = record.model_copy(update={"outputs": [times_file.as_posix()]})
    write_table(times_file, score_table(times, **job.wildcards), times_record)
