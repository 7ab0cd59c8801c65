"""Cost of an encoder: parameters, multiply-accumulates, latency, throughput.

Parameters and multiply-accumulates are exact and repeatable. Times are neither, so a separate function measures them
for a separate file. An encoder is timed alternately with its base encoder in one process, under the same conditions;
the ratio is the number to quote.

Multiply-accumulates are counted during a forward pass: in x out for every row that enters a linear layer
(``gmac_linear``, as counted by thop), and all products of matrices (``gmac_total``, as counted by PyTorch's
``FlopCounterMode``), which adds 2 T^2 D per sentence for a self-attention layer. Embedding look-ups, softmax,
normalisation and activations are not counted. Parameters are those that the pass reads: a head that is only used in
training, such as SimCSE's, does not count.

Shape suffixes: B sentences, T tokens.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode
from transformers import PreTrainedModel

from workflow_scripts.evaluation.base import Score, score_table
from workflow_scripts.evaluation.recording import recorded_inputs
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
PROMPTED = " with those of the template"
"""Part of the notes on an encoder with a template, whose sentences are longer than its base encoder's."""


class Counts(NamedTuple):
    """Parameters that a forward pass reads, and its multiply-accumulates: of linear layers, and of all products."""

    parameters: int
    linear: int
    total: int


class TensorsRead(TorchFunctionMode):
    """Collect the identities of all tensors that functions of PyTorch read inside the block."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[int] = set()

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call the function, after noting its arguments."""
        self.found.update(map(id, tree_leaves((args, kwargs))))
        return func(*args, **(kwargs or {}))


def evaluate(config: Config, encoder: Encoder, base: Encoder, prompted: str = "") -> list[Score]:
    """Return parameters and multiply-accumulates of an encoder and its base encoder (aggregation ``base``).

    Args:
        config: Settings of the suite.
        encoder: The encoder.
        base: The encoder from which it started.
        prompted: End of the notes, such as ``PROMPTED`` for an encoder with a template.

    Returns:
        ``parameters``, 10^9 multiply-accumulates for one sentence of ``config.tokens`` tokens, and the encoder's
        additional parameters in percent of the base encoder's.
    """
    task, note = "cost", f"one sentence of {config.tokens} tokens{prompted}"
    scores, counts = [], []
    for aggregation, (module, forward) in (("", encoder), ("base", base)):
        counts.append(count(module, forward, config.tokens))
        scores += [
            Score(task, aggregation, "parameters", float(counts[-1].parameters), 1),
            Score(task, aggregation, "gmac_linear", counts[-1].linear / 1e9, 1, note),
            Score(task, aggregation, "gmac_total", counts[-1].total / 1e9, 1, note),
        ]
    added = 100 * (counts[0].parameters / counts[1].parameters - 1)
    return [*scores, Score(task, "", "added_parameters_percent", added, 1)]


def run_backbone(backbone: PreTrainedModel, ids_BT: Tensor, mask_BT: Tensor) -> object:
    """Run one pass of an encoder without pooler or head."""
    return hidden_states(backbone, TokenBatch(ids_BT, mask_BT), "last")


def count(module: nn.Module, forward: Forward, tokens: int) -> Counts:
    """Return the counts of one forward pass over a sentence of ``tokens`` tokens.

    This also works on the meta device, without computation, if the pass reads no value of a tensor.
    """
    layers = [layer for layer in module.modules() if isinstance(layer, nn.Linear)]
    batch = _batch(module, 1, tokens)
    with (
        torch.inference_mode(),
        unpacked(),
        sdpa_kernel(SDPBackend.MATH),  # a CPU's fused attention is one operation, which is not counted
        recorded_inputs(layers) as rows,
        FlopCounterMode(display=False) as products,
        TensorsRead() as read,
    ):
        forward(*batch)
    return Counts(
        parameters=sum(one.numel() for one in module.parameters() if id(one) in read.found),
        linear=sum(row.numel() * layer.out_features for layer, row in rows),
        total=products.get_total_flops() // 2,  # a multiplication and an addition each
    )


def time_against_base(config: Config, encoder: Encoder, base: Encoder, prompted: str = "") -> list[Score]:
    """Return times of an encoder and its base encoder, measured alternately on the CPU; they differ between runs.

    Its arguments are those of ``evaluate``.

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
        note = f"{config.tokens} tokens{prompted}, cpu, {torch.get_num_threads()} threads"
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
    prompted = PROMPTED if encoder.template else ""
    scores = evaluate(config, ours, base, prompted)
    times = time_against_base(config, ours, base, prompted)
    write_table(job.outputs["scores"], score_table(scores, **job.wildcards), record)
    times_file = job.outputs["times"]  # times differ between runs
    times_file.parent.mkdir(parents=True, exist_ok=True)
    times_record = record.model_copy(update={"outputs": [times_file.as_posix()]})
    write_table(times_file, score_table(times, **job.wildcards), times_record)
