"""A card computes what the CPU computes, the same bytes every time, without a wait: ``make gpu-test``.

Encoders have random weights, sentences are made up: no data, no network, no Snakemake. Without a card all is skipped;
with SEMBLANCE_GPU_TEST_DEVICE=cpu the tests try themselves out there, against float64 where a card has float32, without
what only a card can show.
"""

import gc
import os
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from sentence_transformers import SentenceTransformer
from torch import Tensor
from torch.utils._pytree import tree_map_only

from tests.gpu.steps import BATCHES, DEVICE, ON_CARD, Cycling, busy, settled
from tests.support import small_methods
from tests.support.toy_methods import blocks
from tests.support.toy_objectives import CASES, objective_of, shapes_of
from tests.support.toys import (
    BASE,
    Size,
    numbered_sentences,
    numbered_tokenizer,
    random_encoder,
    training_of,
    write_random_encoder,
)
from workflow_scripts.methods import simcse
from workflow_scripts.models.dropout import DropoutMasks, dropout_keys, keys_of, patched_dropout
from workflow_scripts.models.encoding import encode_tokens
from workflow_scripts.models.templates import tokenise_in
from workflow_scripts.models.text_encoder import TokenEncoder
from workflow_scripts.models.tokens import NATURAL, Packing, onto
from workflow_scripts.settings.methods import read_method
from workflow_scripts.training import step
from workflow_scripts.training.checkpoints import Checkpoint
from workflow_scripts.training.data import TrainingData
from workflow_scripts.training.loop import State, prepare, train
from workflow_scripts.training.objective import Objective
from workflow_scripts.training.step import (
    ROUNDED,
    CUDAGraphStep,
    EagerStep,
    TrainStep,
    prepare_inputs,
    shapes_for,
)

if ON_CARD and not torch.cuda.is_available():
    pytest.skip(
        "PyTorch sees no GPU; SEMBLANCE_GPU_TEST_DEVICE=cpu tries the tests out", allow_module_level=True
    )
on_a_card = pytest.mark.skipif(not ON_CARD, reason="only a card can show it")

CLOSE = 1e-4
"""Of float32, relative: sums are taken in another order."""
FLOOR = 1e-3
"""Of the whole gradient: what is 0 but for rounding has no relative error."""
IDLE = 0.08
"""The share of its time in which a card may have nothing to do between kernels of uncompiled layers (H200: 5.3%)."""
STEPS, RESUMED_AFTER, KILLED_AT = 6, 3, 5
CPU, SIZE = small_methods.CPU, small_methods.SIZE
SETTINGS = training_of(SIZE, max_steps=STEPS, precision="float32", checkpoint_minutes=0, cpu_threads=1)
SHAPES = ROUNDED if ON_CARD else NATURAL
FAMILIES = {
    "roberta": ("simcse", "jtcse", "promptbert", "diffcse", "continue_mlm"),
    "mpnet": ("simcse", "promptbert", "diffcse", "continue_mlm"),
}
"""Other encoders on packed tokens, and what is tried of each."""
ALL = [("bert", name) for name in CASES] + [
    (family, name) for family in FAMILIES for name in FAMILIES[family]
]
EXACT = ("promptbert_avg", "promptbert_s2sent", "simcse_s2sent.code", "simcse_s2sent.code_norm")
"""Compared in float64: in float32 a CPU alone is 1e-4 to 5e-4 off (small differences, BatchNorm of equal gates)."""
AGAIN = ("simcse_3r", "diffcse")
WIDE = SIZE._replace(width=128, feed_forward=256)
SIZES = {
    "6 layers, 384 wide": BASE._replace(layers=6, width=384, feed_forward=1536),
    "12 layers, 768 wide": BASE,
    "24 layers, 1024 wide": BASE._replace(layers=24, width=1024, heads=16, feed_forward=4096),
}
SENTENCES = (64, 256)


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT and a tiny decoder; algorithms are deterministic before the card is touched."""
    prepare(SETTINGS, seed=1)
    return small_methods.bert(tmp_path_factory.mktemp("encoders")).parent


@pytest.fixture(scope="module")
def folders(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, Size], Path]:
    """Folders of all families and sizes."""
    found = {("bert", SIZE): folder}
    for family, size in [("bert", WIDE), *((family, SIZE) for family in FAMILIES)]:
        found[family, size] = place = tmp_path_factory.mktemp(family)
        write_random_encoder(place, size, "llama")
        write_random_encoder(place, size, family, "bert")
    return found


# As a CPU


class Taken(NamedTuple):
    """A first step: what updates the weights, the loss, and the gradients as they were cut to their norm."""

    update: TrainStep
    loss: float
    gradients: dict[str, Tensor]


def taken_by(objective: Objective) -> Taken:
    """Take the first step of an objective, whose inputs, such as a teacher's vectors, have its weights' precision."""
    update = TrainStep(objective, SETTINGS, STEPS)
    precision = next(objective.module.parameters()).dtype
    inputs = tree_map_only(
        Tensor,
        lambda read: read.to(precision) if read.is_floating_point() else read,
        prepare_inputs(objective, 1, 1),
    )
    left, _names = EagerStep(update, compiles=False)(inputs, SETTINGS.learning_rate)
    named = objective.module.named_parameters()
    gradients = {name: p.grad.double().cpu() for name, p in named if p.grad is not None}
    return Taken(update, left[0].item(), gradients)


def distance(one: Taken, other: Taken) -> float:
    """The largest relative distance of the losses and of any parameter's gradient."""
    assert one.gradients.keys() == other.gradients.keys()
    whole = torch.stack([gradient.norm() for gradient in one.gradients.values()]).norm()
    apart = [
        (gradient - other.gradients[name]).norm() / (gradient.norm() + FLOOR * whole)
        for name, gradient in one.gradients.items()
    ]
    return max(abs(one.loss - other.loss) / abs(one.loss), *map(float, apart))


@pytest.fixture(scope="module", params=ALL, ids=" ".join)
def case(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A family, and a method, a reading of one, or masked language modelling."""
    named: tuple[str, str] = request.param
    return named


@pytest.fixture(scope="module")
def taken(case: tuple[str, str], folders: dict[tuple[str, Size], Path]) -> Taken:
    """The first step on the card, of a batch that is rounded up as for a capture."""
    family, name = case
    objective = objective_of(folders[family, SIZE], name, shapes_of(name), DEVICE)
    if name in EXACT or not ON_CARD:
        objective.module.double()
    return taken_by(objective)


def test_loss_and_gradients_are_those_of_the_cpu(case, folders, taken):
    family, name = case
    objective = objective_of(folders[family, SIZE], name)
    if name in EXACT:
        objective.module.double()
    assert distance(taken_by(objective), taken) < CLOSE


@on_a_card
def test_a_step_waits_for_nothing(taken):
    inputs = pinned(prepare_inputs(taken.update.objective, 1, 2))
    torch.cuda.set_sync_debug_mode("error")
    try:
        EagerStep(taken.update, compiles=False)(inputs, SETTINGS.learning_rate)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def pinned(inputs: Any) -> Any:
    """Inputs as the thread that makes them leaves them."""
    return tree_map_only(Tensor, Tensor.pin_memory, inputs)


@pytest.mark.parametrize("name", small_methods.readouts())
def test_vectors_of_both_libraries_are_those_of_the_cpu(folder, tmp_path, name):
    encoder = small_methods.encoder_with(folder / "bert", small_methods.readouts()[name])
    host = encoder.encode(small_methods.TEXTS, SIZE.tokens)
    encoder.save(tmp_path)
    loaded = SentenceTransformer(str(tmp_path), device=str(DEVICE), trust_remote_code=True)
    loaded.max_seq_length = SIZE.tokens
    for card in (
        encoder.to(DEVICE).encode(small_methods.TEXTS, SIZE.tokens),
        loaded.encode(small_methods.TEXTS),
    ):
        assert np.abs(host - card).max() < CLOSE * np.abs(host).max()


@on_a_card
def test_draws_are_those_of_the_cpu_to_the_bit():
    packing, keys = Packing.of(torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]])), keys_of(1, 1)
    drawn = []
    for device in (CPU, DEVICE):
        with dropout_keys(onto(keys, device)):
            masks = DropoutMasks(onto(packing, device))
        with patched_dropout(masks):
            slopes = F.rrelu(torch.full((2, 4, 6), -1.0, device=device), training=True)
        first, second = masks.sites(0, 2)
        drawn.append((masks.hidden(first, 0.1, 64), masks.attention(second, 0.1, 4), slopes))
    for one, other in zip(*drawn, strict=True):
        assert torch.equal(one, other.cpu())


def test_bfloat16_rounds_and_lies_near_float32(folder):
    gradients = []
    for precision in ("float32", "bfloat16"):
        objective = objective_of(folder, "simcse", ROUNDED, DEVICE)
        update = TrainStep(objective, SETTINGS.model_copy(update={"precision": precision}), STEPS)
        EagerStep(update, compiles=False)(prepare_inputs(objective, 1, 1), 0.0)
        found = [p.grad.flatten() for p in objective.module.parameters() if p.grad is not None]
        gradients.append(torch.cat(found))
    exact, rounded = gradients
    assert 0 < (rounded - exact).norm() / exact.norm() < 0.1


# The same again


class Killed(Exception):  # noqa: N818  (no error: stands for the end of the process)
    """Raised where a process would end."""


class Trained(NamedTuple):
    """Result of a training."""

    weights: dict[str, bytes]
    losses: list[float]
    captures: int


def trained(
    name: str, folder: Path, place: Path, *, captured: bool, compiles: bool = False, killed: bool = False
) -> Trained:
    """Train as the rule train_encoder does, whatever is left in ``place`` first."""
    objective = objective_of(folder, name, SHAPES, DEVICE)
    inputs, capture, captured_inputs = objective.inputs, CUDAGraphStep._capture, []

    def until_killed(number: int) -> Any:
        if killed and number == KILLED_AT:
            raise Killed
        return inputs(number)

    def counted(self: CUDAGraphStep, given: Any) -> Any:
        captured_inputs.append(given)
        return capture(self, given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(objective, "inputs", until_killed)
        patch.setattr(CUDAGraphStep, "_capture", counted)
        patch.setattr(step, "CAPTURED_FROM", 0 if captured else STEPS + 1)
        patch.setattr(step, "COMPILED_FROM", 0 if compiles else 1_000_000)
        outcome = train(
            objective, SETTINGS, STEPS, seed=1, development=None, checkpoints=place, fingerprint="", shapes=SHAPES
        )  # fmt: skip
    weights = {key: tensor.cpu().numpy().tobytes() for key, tensor in objective.module.state_dict().items()}
    return Trained(weights, outcome.history["loss"].to_pylist(), len(captured_inputs))


@pytest.fixture(scope="module", autouse=True)
def compiled(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Future[Trained]]]:
    """A training with compiled layers, made twice meanwhile by processes whose compilers share no cache."""
    places = [tmp_path_factory.mktemp("compiled") for _ in range(2)]
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        yield [processes.submit(compiled_in, folder, place) for place in places]


def compiled_in(folder: Path, place: Path) -> Trained:
    """A process's part of ``compiled``."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(place / "cache")
    prepare(SETTINGS, seed=1)
    return trained("simcse", folder, place / "checkpoints", captured=True, compiles=True)


def differing(one: Trained, other: Trained) -> list[str]:
    """The tensors that are not equal bit for bit."""
    return [name for name, weights in one.weights.items() if weights != other.weights[name]]


WAYS = {"float32": (SIZE, "float32"), "wide bfloat16": (WIDE, "bfloat16")}
METHODS = [("bert", name) for name in CASES if "." not in name]  # without readings
EACH_WAY = [("float32", *one) for one in ALL] + [("wide bfloat16", *one) for one in METHODS]


class Steps(NamedTuple):
    """Result of some steps: their losses and metrics as text, the weights after them, and the number of captures."""

    found: list[str]
    weights: dict[str, Tensor]
    graphs: int


def steps_of(folder: Path, name: str, way: str, *, captured: bool) -> Steps:
    """Take all steps of a case.

    Captured steps are interrupted by evaluations and, in the middle, by the end of their process: what resumes from the
    checkpoint is made anew.
    """
    size, precision = WAYS[way]
    settings = training_of(size, max_steps=STEPS, precision=precision)
    found, graphs = [], 0
    checkpoint: Checkpoint | None = None
    for first, last in [(1, RESUMED_AFTER), (RESUMED_AFTER + 1, STEPS)] if captured else [(1, STEPS)]:
        objective = objective_of(folder, name, shapes_of(name), DEVICE, size)
        state = State(objective, settings, STEPS)
        if checkpoint is not None:
            state.resume(checkpoint)
        run = (CUDAGraphStep if captured and is_captured(objective) else EagerStep)(
            state.update, compiles=False
        )
        for state.step in range(first, last + 1):
            results, _names = run(prepare_inputs(objective, 1, state.step), settings.learning_rate)
            found.append(str(results.tolist()))
            if captured:
                evaluate(objective, folder)
        checkpoint = state.to_checkpoint()
        graphs += len(run._graphs) if isinstance(run, CUDAGraphStep) else 0
    assert checkpoint is not None
    return Steps(found, checkpoint.groups["model"], graphs)


def is_captured(objective: Objective) -> bool:
    """Whether a long training captures its steps."""
    return ON_CARD and shapes_for(DEVICE, objective.module, None) != NATURAL


def evaluate(objective: Objective, folder: Path) -> None:
    """Encode sentences with the encoder of a case, as for the score on the development set."""
    encoders = (part for part in objective.module.modules() if isinstance(part, TokenEncoder))
    if encoder := objective.scored or next(encoders, None):
        encode_tokens(
            encoder, tokenise_in(encoder.template, encoder.tokenizer, small_methods.TEXTS, SIZE.tokens)
        )


@pytest.mark.parametrize(("way", "family", "name"), EACH_WAY)
def test_captured_and_resumed_steps_leave_the_eager_bytes(folders, way, family, name):
    """Captured and resumed steps leave the bytes of eager ones."""
    folder = folders[family, WAYS[way][0]]
    eager = steps_of(folder, name, way, captured=False)
    again = steps_of(folder, name, way, captured=True)
    assert (again.graphs > 0) == is_captured(objective_of(folder, name, device=DEVICE, size=WAYS[way][0]))
    assert again.found == eager.found
    weights = eager.weights.items()
    assert [key for key, tensor in weights if not torch.equal(tensor, again.weights[key])] == []


@pytest.mark.parametrize("name", AGAIN)
def test_captured_killed_and_resumed_steps_leave_the_same_bytes(folder, tmp_path, name):
    """Captured steps and those killed and resumed leave the bytes of others."""
    eager = trained(name, folder, tmp_path / "eager", captured=False)
    replayed = trained(name, folder, tmp_path / "captured", captured=True)
    assert (eager.captures, replayed.captures > 0) == (0, ON_CARD)
    assert differing(eager, replayed) == []
    with pytest.raises(Killed):
        trained(name, folder, tmp_path / "killed", captured=True, killed=True)
    assert differing(eager, trained(name, folder, tmp_path / "killed", captured=True)) == []


def test_compiled_steps_leave_the_same_bytes(folder, tmp_path, compiled):
    """Compiled steps leave the same bytes whatever compiled them."""
    first, second = (future.result() for future in compiled)
    assert differing(first, second) == []
    eager = trained("simcse", folder, tmp_path, captured=False)
    assert first.losses == pytest.approx(eager.losses, rel=CLOSE)


# How well a card is used: last, when no other process computes on it


def simcse_of(size: Size) -> Objective:
    """SimCSE with random weights."""
    config = read_method(blocks()["simcse"], "methods")
    with DEVICE:
        backbone = random_encoder(size)
    rows, tokenizer = BATCHES * size.batch, numbered_tokenizer(size)
    encoder = simcse.build(config, tokenizer, backbone).to(DEVICE)
    sampler, columns = Cycling(rows, size.batch, seed=3), {"anchor": numbered_sentences(rows, size)}
    data = TrainingData(columns, tokenizer, size.tokens, sampler, shapes=ROUNDED)
    return simcse.Objective(config, encoder, data)


def large(size: Size) -> Iterator[step.Results]:
    """Steps of a long training in bfloat16."""
    return settled(simcse_of(size), training_of(size, precision="bfloat16"), compiles=False)


@on_a_card
def test_a_card_is_hardly_idle_in_steps_of_bert_base(capsys):
    steps = large(BASE)
    found = busy(lambda: [next(steps) for _ in range(20)])
    with capsys.disabled():
        print(f"\na step of BERT-base: {found.whole / 20:.4f} s, idle for {found.idle:.1%}")  # noqa: T201
    assert found.idle < IDLE


@on_a_card
def test_how_much_memory_a_training_takes_is_printed(capsys):
    for name, size in SIZES.items():
        peaks = [peak(size._replace(batch=batch)) for batch in SENTENCES]
        with capsys.disabled():
            print(f"\nSimCSE, {name}, at batches of {SENTENCES}: {', '.join(peaks)}")  # noqa: T201


def peak(size: Size) -> str:
    """The gigabytes that captured steps hold."""
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    try:
        next(large(size))
    except torch.cuda.OutOfMemoryError:
        return "more than the card has"
    return f"{torch.cuda.max_memory_reserved() / 1e9:.1f} GB"
