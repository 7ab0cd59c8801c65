"""Steps and encoding of BERT-base on a GPU, against sentence-transformers and a bare loop: bfloat16, three minutes.

Steps are those of a long training, after its layers are compiled and its shapes captured. Weights and sentences are
random: the benchmark needs the folders workflow_scripts, tests, benchmarks and config, but no Snakemake, data or
network. SEMBLANCE_GPU_TEST_DEVICE=cpu with --small tries it on a CPU.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path

import torch

from benchmarks.harness import Measured, Seconds, Timing, ratios
from benchmarks.peers import POOLERS, Step, peer, recipe, trainer, two_calls
from tests.gpu.steps import BATCHES, DEVICE, ON_CARD, Cycling, busy, settled
from tests.support.toy_methods import Block, blocks, prepared
from tests.support.toys import BASE, SMALL, Size, numbered_sentences, training_of, write_random_encoder
from workflow_scripts.methods import simcse
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.training.loop import prepare
from workflow_scripts.training.step import ROUNDED

CODE = (
    "benchmarks/peers.py",
    "config/methods.yaml",
    "tests/gpu/steps.py",
    "workflow_scripts/losses",
    "workflow_scripts/methods",
    "workflow_scripts/models",
    "workflow_scripts/training",
)
SENTENCES = 20_000
PEAKS = {"H100": 989e12, "H200": 989e12, "A100": 312e12, "L40S": 362e12, "L4": 121e12}
"""Dense bfloat16 operations per second, from NVIDIA's data sheets."""
OTHERS = ("simcse_3r", "jtcse")

Way = Callable[[], object]


def measure(timing: Timing) -> Iterator[Measured]:
    """Yield ratios of steps on [CLS] and on averages, of other methods' steps, and of encoding; none without a GPU."""
    if not (torch.cuda.is_available() if ON_CARD else timing.small):
        print("gpu skipped: PyTorch sees no GPU", file=sys.stderr)
        return
    os.environ["TOKENIZERS_PARALLELISM"] = "true"  # peers tokenise in every step
    size = SMALL._replace(layers=2) if timing.small else BASE
    prepare(training_of(size), seed=1)
    with tempfile.TemporaryDirectory() as folder:
        write_random_encoder(Path(folder), size)
        for measurement in _found(timing, Path(folder), size):
            yield measurement._replace(clock="wall", card=card())


def _found(timing: Timing, folder: Path, size: Size) -> Iterator[Measured]:
    block = blocks()["simcse"]
    read = {pooler: block | {"readout": block["readout"] | {"pooler": pooler}} for pooler in POOLERS}
    others = {name: blocks()[name] for name in OTHERS}
    ways = {name: ours(timing, folder, size, method) for name, method in (read | others).items()}
    for pooler in POOLERS:
        yield from _steps(timing, folder, size, pooler, ways[pooler])
    seconds = timed(timing, {name: ways[name] for name in ("cls", *OTHERS)})
    for name in OTHERS:
        yield Measured(f"gpu_cost_{name}", ratios(seconds, name, "cls"), "simcse-steps", "on-a-gpu")
    yield from _encoding(timing, folder, size)


def _steps(timing: Timing, folder: Path, size: Size, pooler: str, semblance: Way) -> Iterator[Measured]:
    steps, name = steps_of(timing), f"gpu_step_{pooler}"
    settings = training_of(size, max_steps=steps, precision="bfloat16")
    step = Step(
        folder / "bert",
        numbered_sentences(steps * size.batch, size),
        settings,
        recipe(pooler),
        pooler,
        DEVICE,
    )
    peers = {"trainer": trainer(step, timing.rounds + 1), "two calls": two_calls(step)}
    seconds = timed(timing, {"semblance": semblance} | peers)
    for way, ending, against in (
        ("trainer", "", "semblance-against-sentence-transformers-trainer"),
        ("two calls", "_bare", "semblance-against-a-bare-loop-of-two-calls"),
    ):
        yield Measured(f"{name}{ending}", ratios(seconds, way, "semblance"), "times-as-fast", against)
    each = [taken / steps for taken in seconds["semblance"]]
    yield Measured(f"{name}_time", [1e3 * taken for taken in each], "milliseconds-a-step", "semblance")
    if ON_CARD:
        kernels = [1e3 * busy(semblance).kernels / steps for _round in range(timing.rounds)]
        yield Measured(f"{name}_busy", kernels, "milliseconds-a-step", "in-which-a-kernel-runs")
    if peak := next((peak for kind, peak in PEAKS.items() if kind in card()), None):
        shares = [operations(size) / taken / peak for taken in each]
        yield Measured(f"{name}_peak", shares, "of-the-peak", "products-in-bfloat16")


def _encoding(timing: Timing, folder: Path, size: Size) -> Iterator[Measured]:
    texts = numbered_sentences(size.batch if timing.small else SENTENCES, size, seed=5)
    step = Step(folder / "bert", texts, training_of(size), recipe("avg"), "avg", DEVICE)
    encoder = simcse.build(step.method, load_tokenizer(step.folder), load_backbone(step.folder)).to(DEVICE)
    model = peer(step)
    ways: Mapping[str, Way] = {
        "semblance": lambda: encoder.encode(texts, size.tokens),
        "sentence-transformers": lambda: model.encode(texts, batch_size=128, show_progress_bar=False),
    }
    faster = ratios(timed(timing, ways), "sentence-transformers", "semblance")
    yield Measured("gpu_encode", faster, "times-as-fast", "semblance-against-sentence-transformers")


def steps_of(timing: Timing) -> int:
    """Return the number of steps in a round."""
    return BATCHES * (1 if timing.small else 3)


def ours(timing: Timing, folder: Path, size: Size, block: Block) -> Way:
    """Return a function that takes some steps of a method, compiled and captured."""
    rows = BATCHES * size.batch
    sampler = Cycling(rows, size.batch, seed=3)
    objective = prepared(block, folder, size, DEVICE, rows, sampler, shapes=ROUNDED).objective
    steps = settled(objective, training_of(size, precision="bfloat16"), compiles=True)
    return lambda: list(islice(steps, steps_of(timing)))


def timed(timing: Timing, ways: Mapping[str, Way]) -> Seconds:
    """Return wall-clock seconds until the GPU has finished; peers run without deterministic algorithms."""

    def finished(name: str, work: Way) -> None:
        torch.use_deterministic_algorithms(name not in ("trainer", "two calls"))
        work()
        if ON_CARD:
            torch.cuda.synchronize()

    return timing.interleaved({name: partial(finished, name, work) for name, work in ways.items()}, "wall")


def operations(size: Size) -> int:
    """Return the operations of a step's products: six per weight and token of both views, in ``ours``'s batches."""
    weights = size.layers * (4 * size.width**2 + 2 * size.width * size.feed_forward)
    lengths = [
        min(len(text.split()) + 2, size.tokens) for text in numbered_sentences(BATCHES * size.batch, size)
    ]
    return 6 * weights * 2 * sum(lengths) // BATCHES


def card() -> str:
    """Return names and versions of the GPU, its driver and PyTorch."""
    if not ON_CARD:
        return f"PyTorch {torch.__version__}"
    asked = ("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    driver = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()[0]
    return f"{torch.cuda.get_device_name()}, driver {driver}, PyTorch {torch.__version__}"
