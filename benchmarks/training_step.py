"""A training step of SimCSE as users run it, against sentence-transformers' trainer and against a bare loop.

All three train the same modules (for [CLS], the head that SimCSE trains) on the same sentences, from texts to updated
weights: tokenising, forward, backward, clipping, fused AdamW with a linear schedule. Loading the encoder and making
sentence-transformers' trainer are left out. Ours is the training job's loop in its deterministic mode; the peers do not
need this mode, and its cost has a separate row. The bare loop calls the encoder twice, like sentence-transformers'
loss, without a trainer around it.

The last row is the job's share of the processor's rate of matrix products: the time of large products with as many
floating-point operations as PyTorch counts in the job, divided by the job's time.
"""

import re
import sys
from collections.abc import Iterator

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.harness import THREADS, Measured, Timing, ratios
from benchmarks.material import minilm, wikipedia_sentences
from benchmarks.peers import POOLERS, Step, Way, ours, recipe, trainer, two_calls
from tests.support.toys import SMALL, training_of

CODE = (
    "config/methods.yaml",
    "benchmarks/peers.py",
    "workflow_scripts/losses",
    "workflow_scripts/training/objective.py",
    "workflow_scripts/methods/simcse.py",
    "workflow_scripts/models",
    "workflow_scripts/training",
)
SHARES = {
    "products": r"aten::(addmm|mm|bmm|baddbmm|matmul|linear|mkldnn.*|_mkl.*)$",
    "attention": r"aten::.*(scaled_dot_product|softmax).*",
    "dropout": r"aten::(.*dropout.*|bernoulli_.*|bitwise_.*|__rshift__|ge)$",
    "embedding and its gradient": r"aten::(embedding.*|index_select|index_add.*|index_put.*)",
    "zero-filling": r"aten::(zero_|zeros.*|fill_)",
    "activations and norms": r"aten::(gelu.*|native_layer_norm.*|tanh.*)",
    "optimiser and clipping": r"(aten::(_fused_adam.*|_foreach_.*|linalg_vector_norm)|Optimizer\..*)",
    "copies": r"aten::(copy_|cat|index|clone|repeat|contiguous)$",
}
"""Purposes of a step's operations, by parts of their names."""


def step_of(pooler: str, *, small: bool) -> Step:
    """Return material and settings of all ways."""
    size = SMALL._replace(batch=8 if small else 64, tokens=32)
    steps = 1 if small else 3
    settings = training_of(size, max_steps=steps, cpu_threads=THREADS)
    texts = wikipedia_sentences(steps * size.batch)
    return Step(minilm(), texts, settings, recipe(pooler), pooler, torch.device("cpu"))


def measure(timing: Timing) -> Iterator[Measured]:
    """Yield the ratios of training with the pooler of SimCSE's paper, and with the mean of the tokens."""
    for pooler in POOLERS:
        step = step_of(pooler, small=timing.small)
        semblance = ours(step)
        ways = {
            "semblance": semblance,
            "any algorithms": ours(step, deterministic=False),
            "trainer": trainer(step, timing.rounds + 1),
            "two calls": two_calls(step),
            "products": products_of(semblance),
        }
        seconds = timing.interleaved(ways)
        for way, against in (
            ("trainer", "semblance-against-sentence-transformers-trainer"),
            ("two calls", "semblance-against-a-bare-loop-of-two-calls"),
        ):
            name = f"training_step_{pooler}" + ("" if way == "trainer" else "_bare")
            yield Measured(name, ratios(seconds, way, "semblance"), "times-as-fast", against)
        yield Measured(
            f"training_step_{pooler}_deterministic",
            ratios(seconds, "semblance", "any algorithms"),
            "times-the-time",
            "deterministic-algorithms-against-any",
        )
        yield Measured(
            f"training_step_{pooler}_rate",
            ratios(seconds, "products", "semblance"),
            "of-the-rate",
            "semblance-against-matrix-products",
        )


def products_of(work: Way) -> Way:
    """Return a function of large matrix products with as many floating-point operations as some work."""
    with FlopCounterMode(display=False) as counter:
        work()
    square = torch.randn(1024, 1024)
    repeats = round(counter.get_total_flops() / (2 * 1024**3))

    def multiply() -> None:
        for _ in range(repeats):
            square @ square

    return multiply


def explain(timing: Timing) -> None:
    """Print profiles of our step and of the bare loop's."""
    for pooler in POOLERS:
        step = step_of(pooler, small=timing.small)
        for name, work in {"semblance": ours(step), "two calls": two_calls(step)}.items():
            work()
            with profile(activities=[ProfilerActivity.CPU]) as profiled:
                work()
            print(f"{pooler}, {name}: {shares(profiled)}", file=sys.stderr)


def shares(profiled: profile) -> str:
    """Return the shares of time by ``SHARES``, and the largest of the other operations."""
    spent = {event.key: event.self_cpu_time_total for event in profiled.key_averages()}
    whole = sum(spent.values())
    rest = dict(spent)
    parts = []
    for part, pattern in SHARES.items():
        times = [rest.pop(key) for key in list(rest) if re.match(pattern, key)]
        parts.append(f"{part} {sum(times) / whole:.1%}")
    largest = sorted(rest.items(), key=lambda item: -item[1])[:6]
    others = ", ".join(f"{key} {taken / whole:.1%}" for key, taken in largest)
    return f"{', '.join(parts)}; the rest {sum(rest.values()) / whole:.1%}: {others}"
