"""Cost of a step of each method in SimCSE steps of the same batch, next to the minimum by arithmetic."""

import importlib
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from benchmarks.harness import Measured, Timing, ratios
from benchmarks.material import minilm, wikipedia_sentences
from tests.support.toys import SMALL, training_of
from workflow_scripts.graph.configuration import load_config
from workflow_scripts.methods.jtcse import cross_layers
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.settings.grids import Run
from workflow_scripts.settings.methods import read_method
from workflow_scripts.settings.overrides import Override
from workflow_scripts.settings.study import Configuration, read_run
from workflow_scripts.training.data import TrainingData
from workflow_scripts.training.mlm import MaskedLanguageModel, save_head
from workflow_scripts.training.sampler import Sampler
from workflow_scripts.training.step import EagerStep, TrainStep, prepare_inputs

CODE = (
    "config/methods.yaml",
    "workflow_scripts/losses",
    "workflow_scripts/methods",
    "workflow_scripts/models",
    "workflow_scripts/training",
)
MAX_TOKENS, TOKENS = 32, 24  # TOKENS: approximate length of a sentence
POOL = 12
SETTLING = 5
"""Number of steps of each method before the first round, until memory is no longer returned and requested again."""
METHODS = {"simcse": 1, "simcse_3r": 1, "tncse": 2, "jtcse": 2} | dict.fromkeys(
    ("simcse_s2sent", "simcse_layerattpooler", "simcse_round_trips", "supervised_simcse", "informin_cl", "sscl",
     "promptbert", "diffcse"), 1,
)  # fmt: skip
"""Groups of methods, each with the number of encoders that a method trains."""
PASSES = {"supervised_simcse": 3 / 2, "diffcse": 1 + 1 / 3 + 1, "promptbert": 1 + 10 / TOKENS}
"""Work of a step, in SimCSE's two views: three columns; an untrained generator, and a discriminator;
ten tokens of a template around each sentence."""


def with_head(folder: Path) -> Path:
    """Return the folder of MiniLM with a masked-language-model head, which DiffCSE's generator needs."""
    for file in minilm().iterdir():
        (folder / file.name).symlink_to(file)
    save_head(folder, MaskedLanguageModel(load_backbone(minilm())))
    return folder


def stepper(name: str, encoder: Path, batch: int) -> tuple[Callable[[], object], dict[str, object]]:
    """Return a function that takes the next optimiser step of a method, and the method's block of the configuration."""
    study = Configuration.strictly(load_config(ROOT))
    read, _ = read_run(study, Run(name, "minilm", "wiki", "default", Override(), (1,)))
    assert read
    block = read.method.model_dump(mode="json")
    method = importlib.import_module(f"workflow_scripts.methods.{block['module']}")
    settings = read_method(block, f"methods.{name}")
    backbones = [load_backbone(encoder, **settings.overrides) for _ in range(METHODS[name])]
    sentences = wikipedia_sentences(8 * batch + POOL)
    texts = sentences[POOL:]
    columns = {
        "anchor": texts,
        "positive": texts[::-1],
        "negative": texts[1:] + texts[:1],
        "exemplar": sentences[:POOL],
    }
    sampler = Sampler(len(columns["anchor"]), batch, seed=1)
    tokenizer = load_tokenizer(minilm())
    trained = method.build(settings, tokenizer, *backbones).train()
    objective = method.Objective(settings, trained, TrainingData(columns, tokenizer, MAX_TOKENS, sampler))
    run = EagerStep(TrainStep(objective, training_of(SMALL, precision="float32"), 1), compiles=False)
    numbers = count(1)
    return lambda: run(prepare_inputs(objective, 1, next(numbers)), 1e-6), block


def minimum(name: str, block: dict[str, object], batch: int) -> float:
    """Return the multiply-accumulates of the encoders' passes in units of SimCSE's two views.

    A layer over T tokens of width D takes 12 D^2 T + 2 T^2 D: queries, keys, values and output 4, feed-forward 8. A
    cross stream needs no queries and keys, and no values of its own at layers with cross-attention.
    """
    if name == "simcse_3r":
        return 1 + float(block["k"]) / (2 * batch)  # type: ignore[arg-type]
    share = 0.0
    if name == "jtcse":
        config = load_backbone(minilm()).config
        depth, width = config.num_hidden_layers, config.hidden_size
        joined = cross_layers(depth, int(block["cross_every"]))  # type: ignore[call-overload]
        layer = 12 * width + 2 * TOKENS
        extra = [9 * width + TOKENS + (0 if n in joined else width) for n in range(joined[0], depth + 1)]
        share = sum(extra) / (depth * layer)
    return PASSES.get(name, METHODS[name] * (1 + share))


def measure(timing: Timing) -> Iterator[Measured]:
    """Yield the cost of a step of each method, on the same number of sentences."""
    batch, names = (4, list(METHODS)[:4]) if timing.small else (32, list(METHODS))
    torch.manual_seed(0)
    with TemporaryDirectory() as folder:
        encoder = with_head(Path(folder))
        steppers = {name: stepper(name, encoder, batch) for name in names}
    for _ in range(0 if timing.small else SETTLING):
        for step, _block in steppers.values():
            step()
    seconds = timing.interleaved({name: step for name, (step, _block) in steppers.items()})
    for name, (_step, block) in steppers.items():
        if name != "simcse":
            least = f"arithmetic-needs-{minimum(name, block, batch):.2f}"
            yield Measured(f"training_cost_{name}", ratios(seconds, name, "simcse"), "simcse-steps", least)
