"""What an encoder costs: parameters, multiply-accumulates, latency, throughput.

Parameters and multiply-accumulates are exact and repeatable. Times are neither, so they are measured by a separate
function and belong in a separate file. An encoder is timed alternately with its base encoder in one process, so that
both run under the same conditions; the ratio is the number to quote.

Multiply-accumulates are counted per module during a forward pass: in x out for every row that enters a linear layer
(``gmac_linear``, as counted by thop), and 2 T^2 D per sentence for every self-attention layer of the BERT family
(included in ``gmac_total``). Embedding look-ups, softmax, normalisation and activations are not counted.

Shape suffixes: B sentences, T tokens.
"""

import time
from collections.abc import Callable, Iterable
from statistics import median
from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from workflow_scripts.evaluation.attention import context_projections
from workflow_scripts.evaluation.scores import Score
from workflow_scripts.models.encoder import hidden_states
from workflow_scripts.models.packed import unpacked
from workflow_scripts.models.tokens import TokenBatch
from workflow_scripts.settings.suites.cost import Config as Config

Forward = Callable[[Tensor, Tensor], object]
"""One complete pass from token ids and mask, both of shape (B, T), to sentence vectors; the result is not used."""


class Operations(NamedTuple):
    """Multiply-accumulates of one forward pass."""

    linear: int
    attention: int


def evaluate(config: Config, module: nn.Module, forward: Forward) -> list[Score]:
    """Parameters, and 10^9 multiply-accumulates for one sentence of ``config.tokens`` tokens."""
    operations = count_operations(module, forward, config.tokens, batch_size=1)
    task, note = "cost", f"one sentence of {config.tokens} tokens"
    return [
        Score(task, "", "parameters", float(count_parameters(module)), 1),
        Score(task, "", "gmac_linear", operations.linear / 1e9, 1, note),
        Score(task, "", "gmac_total", sum(operations) / 1e9, 1, note),
    ]


def of_base(scores: Iterable[Score]) -> list[Score]:
    """The same scores marked as those of the base encoder (aggregation ``base``)."""
    return [score._replace(aggregation="base") for score in scores]


def added_parameters(scores: Iterable[Score]) -> Score:
    """Parameters that an encoder has beyond its base encoder's, in percent of those."""
    counts = {score.aggregation: score.value for score in scores if score.metric == "parameters"}
    ours, base = counts[""], counts["base"]
    assert ours is not None and base
    return Score("cost", "", "added_parameters_percent", 100 * (ours / base - 1), 1)


def run_backbone(backbone: PreTrainedModel, ids_BT: Tensor, mask_BT: Tensor) -> object:
    """One pass of an encoder without pooler or head."""
    return hidden_states(backbone, TokenBatch(ids_BT, mask_BT), "last")


def ratios(scores: Iterable[Score]) -> str:
    """What an encoder costs relative to its base encoder, counts and times, in one line."""
    values = {(score.aggregation, score.metric): score.value or 0.0 for score in scores}
    counts = {
        metric: values["", metric] / base
        for (aggregation, metric), base in values.items()
        if aggregation == "base" and base
    }
    times = {
        f"latency, {aggregation}": value
        for (aggregation, metric), value in values.items()
        if metric == "latency_ratio"
    }
    return "; ".join(f"{name} {ratio:.3f}" for name, ratio in (counts | times).items())


def count_parameters(module: nn.Module) -> int:
    """Number of parameters; a parameter that several modules use is counted once."""
    return sum(parameter.numel() for parameter in module.parameters())


def count_operations(module: nn.Module, forward: Forward, tokens: int, batch_size: int) -> Operations:
    """Multiply-accumulates of one forward pass over ``batch_size`` sentences of ``tokens`` tokens.

    Also works on the meta device, where nothing is computed, if the pass does not read the value of a tensor.
    """
    linear: list[int] = []
    attention: list[int] = []

    def note_linear(layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        assert isinstance(layer, nn.Linear)
        linear.append(inputs[0].numel() * layer.out_features)

    def note_attention(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        sentences, length, width = inputs[0].shape
        attention.append(2 * sentences * length**2 * width)  # queries by keys, then weights by values

    layers = [layer for layer in module.modules() if isinstance(layer, nn.Linear)]
    hooks = [layer.register_forward_pre_hook(note_linear) for layer in layers]
    hooks += [layer.register_forward_pre_hook(note_attention) for layer in context_projections(module)]
    try:
        with torch.inference_mode(), unpacked():
            forward(*_batch(module, batch_size, tokens))
    finally:
        for hook in hooks:
            hook.remove()
    return Operations(sum(linear), sum(attention))


def time_against_base(
    config: Config, encoder: tuple[nn.Module, Forward], base: tuple[nn.Module, Forward]
) -> list[Score]:
    """Time an encoder alternately with its base encoder; the scores differ from run to run.

    Returns:
        For each batch size (aggregation ``batch:32``): median ``latency_ms`` of a batch,
        ``sentences_per_second``, the base encoder's ``base_latency_ms``, ``latency_ratio``, the median
        over repeats of the encoder's time by the base encoder's time next to it, and
        ``added_latency_percent``, what that ratio is above 1.
    """
    scores = []
    for batch_size in config.batch_sizes:
        ours, bases = _interleaved_seconds(config, batch_size, encoder, base)
        ratio = median(one / other for one, other in zip(ours, bases, strict=True))
        values = {
            "latency_ms": 1000 * median(ours),
            "sentences_per_second": batch_size / median(ours),
            "base_latency_ms": 1000 * median(bases),
            "latency_ratio": ratio,
            "added_latency_percent": 100 * (ratio - 1),
        }
        note = f"{config.tokens} tokens, {_device_of(encoder[0])}, {torch.get_num_threads()} threads"
        batch = f"batch:{batch_size}"
        scores += [
            Score("cost", batch, metric, value, config.repeats, note) for metric, value in values.items()
        ]
    return scores


def _interleaved_seconds(
    config: Config, batch_size: int, encoder: tuple[nn.Module, Forward], base: tuple[nn.Module, Forward]
) -> tuple[list[float], list[float]]:
    seconds: tuple[list[float], list[float]] = ([], [])
    runs = [(*entry, _batch(entry[0], batch_size, config.tokens)) for entry in (encoder, base)]
    for module in (encoder[0], base[0]):
        module.eval()
    with torch.inference_mode():
        for repeat in range(config.warmup + config.repeats):
            for index in (0, 1) if repeat % 2 else (1, 0):  # neither is always the one that follows the other
                module, forward, batch = runs[index]
                elapsed = _seconds(module, forward, batch)
                if repeat >= config.warmup:
                    seconds[index].append(elapsed)
    return seconds


def _seconds(module: nn.Module, forward: Forward, batch: tuple[Tensor, Tensor]) -> float:
    _wait(module)
    start = time.perf_counter()
    forward(*batch)
    _wait(module)
    return time.perf_counter() - start


def _wait(module: nn.Module) -> None:
    """Wait until a GPU has finished."""
    device = _device_of(module)
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _device_of(module: nn.Module) -> torch.device:
    parameter = next(module.parameters(), None)
    return torch.device("cpu") if parameter is None else parameter.device


def _batch(module: nn.Module, batch_size: int, tokens: int) -> tuple[Tensor, Tensor]:
    """Token ids 0 to 999, repeated, and a mask without padding; the values of the ids do not affect the cost."""
    device = _device_of(module)
    ids_BT = (torch.arange(batch_size * tokens) % 1000).view(batch_size, tokens).to(device)
    return ids_BT, torch.ones_like(ids_BT)
