"""Steps and encoding of BERT-base on a GPU, against sentence-transformers and a bare loop: bfloat16, three minutes.

Steps are those of a long training, once its layers are compiled and its shapes captured; what that takes at first is
left out. Weights are random, sentences made up: it needs the folders workflow_scripts, tests, benchmarks and config,
and neither Snakemake, data nor a network. SEMBLANCE_GPU_TEST_DEVICE=cpu with --small tries it out on a processor.
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
from tests.material import BASE, SMALL, Block, Size, blocks, prepared, sentences, training, write_encoder
from workflow_scripts.methods import simcse
from workflow_scripts.models.encoder import load_backbone, load_tokenizer
from workflow_scripts.models.encoding import encode
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
STEPS = 12
"""In a round; a multiple of the batches that are captured."""
SENTENCES = 20_000
PEAKS = {"H100": 989e12, "H200": 989e12, "A100": 312e12, "L40S": 362e12, "L4": 121e12}
"""Dense bfloat16 operations a second, by NVIDIA's data sheets."""
OTHERS = ("simcse_3r", "jtcse")

Way = Callable[[], object]


def measure(timing: Timing) -> Iterator[Measured]:
    """Steps on [CLS] and on averages, steps of other methods, then encoding; nothing where there is no GPU."""
    if ON_CARD and not torch.cuda.is_available():
        print("gpu skipped: PyTorch sees no GPU", file=sys.stderr)
        return
    os.environ["TOKENIZERS_PARALLELISM"] = "true"  # peers tokenise in every step
    size = SMALL._replace(layers=2) if timing.small else BASE
    prepare(training(size), seed=1)
    with tempfile.TemporaryDirectory() as folder:
        write_encoder(Path(folder), size)
        for one in found(timing, Path(folder), size):
            yield one._replace(clock="wall", card=card())


def found(timing: Timing, folder: Path, size: Size) -> Iterator[Measured]:
    """All figures."""
    for pooler in POOLERS:
        yield from _steps(timing, folder, size, pooler)
    ways = {name: ours(folder, size, blocks()[name]) for name in ("simcse", *OTHERS)}
    seconds = timed(timing, ways)
    for name in OTHERS:
        yield Measured(f"gpu_cost_{name}", ratios(seconds, name, "simcse"), "simcse-steps", "on-a-gpu")
    yield from _encoding(timing, folder, size)


def _steps(timing: Timing, folder: Path, size: Size, pooler: str) -> Iterator[Measured]:
    settings = training(size, max_steps=STEPS, precision="bfloat16", checkpoint_minutes=60)
    texts = sentences(STEPS * size.batch, size)
    step = Step(folder / "bert", texts, settings, recipe(pooler), pooler, DEVICE)
    block = blocks()["simcse"]
    own = ours(folder, size, block | {"readout": block["readout"] | {"pooler": pooler}})
    peers = {"trainer": trainer(step, timing.rounds + 1), "two calls": two_calls(step)}
    seconds = timed(timing, {"semblance": own} | peers)
    name = f"gpu_step_{pooler}"
    against = {"trainer": "sentence-transformers-trainer", "two calls": "a-bare-loop-of-two-calls"}
    for way, what in against.items():
        ending = "" if way == "trainer" else "_bare"
        faster = ratios(seconds, way, "semblance")
        yield Measured(f"{name}{ending}", faster, "times-as-fast", f"semblance-against-{what}")
    each = [taken / STEPS for taken in seconds["semblance"]]
    yield Measured(f"{name}_time", [1e3 * one for one in each], "milliseconds-a-step", "semblance")
    if ON_CARD:
        kernels = [1e3 * busy(own).kernels / STEPS for _round in range(timing.rounds)]
        yield Measured(f"{name}_busy", kernels, "milliseconds-a-step", "in-which-a-kernel-runs")
    if peak := next((peak for kind, peak in PEAKS.items() if kind in card()), None):
        shares = [operations(size) / one / peak for one in each]
        yield Measured(f"{name}_peak", shares, "of-the-peak", "products-in-bfloat16")


def _encoding(timing: Timing, folder: Path, size: Size) -> Iterator[Measured]:
    texts = sentences(size.batch if timing.small else SENTENCES, size, seed=5)
    step = Step(folder / "bert", texts, training(size), recipe("avg"), "avg", DEVICE)
    encoder = simcse.build(step.method, load_backbone(step.folder)).to(DEVICE)
    tokenizer, model = load_tokenizer(step.folder), peer(step)
    ways: Mapping[str, Way] = {
        "semblance": lambda: encode(encoder, tokenizer, texts, size.tokens),
        "sentence-transformers": lambda: model.encode(texts, batch_size=128, show_progress_bar=False),
    }
    faster = ratios(timed(timing, ways), "sentence-transformers", "semblance")
    yield Measured("gpu_encode", faster, "times-as-fast", "semblance-against-sentence-transformers")


def ours(folder: Path, size: Size, block: Block) -> Way:
    """Some steps of a method, compiled and captured."""
    rows = BATCHES * size.batch
    sampler = Cycling(rows, size.batch, seed=3)
    objective = prepared(block, folder, size, DEVICE, rows, sampler, shapes=ROUNDED).objective
    steps = settled(objective, training(size, precision="bfloat16"), compiles=True)
    return lambda: list(islice(steps, STEPS))


def timed(timing: Timing, ways: Mapping[str, Way]) -> Seconds:
    """Seconds that pass until the GPU is done; peers are spared deterministic algorithms."""

    def finished(name: str, work: Way) -> None:
        torch.use_deterministic_algorithms(name not in ("trainer", "two calls"))
        work()
        if ON_CARD:
            torch.cuda.synchronize()

    return timing.interleaved({name: partial(finished, name, work) for name, work in ways.items()}, "wall")


def operations(size: Size) -> int:
    """Of a step's products: six for each weight and token of both views, by the batches that ``ours`` takes."""
    weights = size.layers * (4 * size.width**2 + 2 * size.width * size.feed_forward)
    lengths = [min(len(text.split()) + 2, size.tokens) for text in sentences(BATCHES * size.batch, size)]
    return 6 * weights * 2 * sum(lengths) // BATCHES


def card() -> str:
    """The GPU, its driver and PyTorch."""
    if not ON_CARD:
        return f"PyTorch {torch.__version__}"
    asked = ("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    driver = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()[0]
    return f"{torch.cuda.get_device_name()}, driver {driver}, PyTorch {torch.__version__}"
