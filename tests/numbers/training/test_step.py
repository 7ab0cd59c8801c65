"""Capture and replay of steps, with stand-ins for CUDA graphs that run the update again."""

from collections import Counter
from contextlib import contextmanager, nullcontext
from functools import partial

import pytest
import torch

from tests.support import small_methods
from tests.support.toy_methods import blocks, prepared
from tests.support.toys import SMALL, training_of, write_random_encoder
from workflow_scripts.models import packed
from workflow_scripts.models.tokens import NATURAL, Shapes
from workflow_scripts.training import step
from workflow_scripts.training.step import CUDAGraphStep, EagerStep, TrainStep, prepare_inputs

SIZE = SMALL._replace(layers=2)
STEPS, RATE = 10, 1e-3
CPU = torch.device("cpu")
pytestmark = pytest.mark.usefixtures("torch_settings")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("step")
    write_random_encoder(folder, SIZE)
    return folder


def test_steps_are_captured_unless_a_readout_reads_padding(folder, capsys):
    readouts = small_methods.readouts()
    found = {
        name: step.shapes_for(torch.device("cuda"), small_methods.encoder_with(folder, readout), None)
        for name, readout in readouts.items()
    }
    padded = {name for name, shapes in found.items() if shapes == NATURAL}
    assert padded == {"simcse_s2sent.code", "simcse_s2sent.code_dct"}
    assert len(found) > 20
    assert {shapes.tokens for name, shapes in found.items() if name not in padded} == {256}
    assert capsys.readouterr().err.count("steps are not captured: ") == 2


class Stream:
    """A stand-in for a CUDA stream; a CPU needs no ordering."""

    def wait_stream(self, _other):
        pass


class StandIn:
    """A stand-in for CUDA graphs: calls inside ``graph`` are computed by each ``replay``."""

    def __init__(self):
        self.events = []
        self.recording = None
        self.taken, self.free = 1, 2  # bytes of an eager step, and of the card
        self.error = None

    def CUDAGraph(self):  # noqa: N802
        return _Graph(self)

    @contextmanager
    def graph(self, graph, *, pool, stream, capture_error_mode):
        assert isinstance(stream, Stream)
        assert capture_error_mode == "thread_local"  # another thread pins memory meanwhile
        assert pool == (None if "capture" not in self.events else "pool")
        self.recording = graph
        try:
            yield
            if self.error:
                raise self.error
        except RuntimeError as error:
            raise RuntimeError("operation failed due to a previous error during capture") from error
        finally:
            self.recording = None
            self.events.append("capture")


class _Graph:
    def __init__(self, cuda):
        self._cuda = cuda

    def pool(self):
        return "pool"

    def replay(self):
        self._cuda.events.append("replay")
        self.left.copy_(self.work())


class Watched:
    """An update whose calls inside ``graph`` are recorded, with the addresses of their inputs and results."""

    def __init__(self, update, cuda):
        self._update, self._cuda = update, cuda
        self.begin, self.device, self.optimiser = update.begin, update.device, update.optimiser

    def __call__(self, inputs):
        if graph := self._cuda.recording:
            graph.work = lambda: self._update(inputs)[0]
            graph.left = torch.full_like(self._left, float("nan"))
            return graph.left, self._names
        self._cuda.events.append("eager")
        self._left, self._names = self._update(inputs)
        return self._left, self._names


@pytest.fixture
def cuda(monkeypatch):
    cuda = StandIn()
    for name, value in {
        "CUDAGraph": cuda.CUDAGraph, "graph": cuda.graph, "Stream": Stream, "current_stream": Stream,
        "stream": lambda _stream: nullcontext(), "reset_peak_memory_stats": lambda _device: None,
        "memory_allocated": lambda _device: 0, "max_memory_allocated": lambda _device: cuda.taken,
        "memory_reserved": lambda _device: 0, "mem_get_info": lambda _device: (cuda.free, cuda.free),
    }.items():  # fmt: skip
        monkeypatch.setattr(torch.cuda, name, value)
    return cuda


def steps_of(folder, method, shapes, run_of):
    """Results of ten steps, the weights after them, and the inputs; ``run_of`` makes a runner of an update."""
    objective = prepared(blocks()[method], folder, SIZE, CPU, shapes=shapes).objective
    run = run_of(TrainStep(objective, training_of(SIZE, max_steps=STEPS), STEPS))
    inputs = [prepare_inputs(objective, 1, number) for number in range(1, STEPS + 1)]
    left = [run(one, RATE / number) for number, one in enumerate(inputs, start=1)]
    return left, objective.module.state_dict(), [step._shape(one) for one in inputs]


@pytest.mark.parametrize(
    ("method", "tokens", "most"),
    [("simcse", 16, 12), ("simcse_3r", 256, 12), ("promptbert", 256, 12), ("simcse", 16, 1)],
)
def test_a_recurring_shape_is_captured_with_the_same_results(folder, cuda, monkeypatch, method, tokens, most):
    """A shape that occurs again is captured and replayed with the results of steps that are not."""
    monkeypatch.setattr(step, "MOST_GRAPHS", most)
    shapes = Shapes(tokens=tokens, width=32)
    eager = steps_of(folder, method, shapes, lambda update: EagerStep(update, compiles=False))
    replayed = steps_of(
        folder, method, shapes, lambda update: CUDAGraphStep(Watched(update, cuda), compiles=False)
    )
    occurring = eager[2]
    kept = [shape for n, shape in enumerate(occurring) if occurring[:n].count(shape) == 1][:most]
    replays = sum(occurring.count(shape) - 1 for shape in kept)
    assert 0 < replays < STEPS
    assert Counter(cuda.events) == {"capture": len(kept), "replay": replays, "eager": STEPS - replays}
    for (one, names), (other, same_names) in zip(eager[0], replayed[0], strict=True):
        assert names == same_names
        assert torch.equal(one, other)
    assert all(torch.equal(value, replayed[1][name]) for name, value in eager[1].items())


FAILURES = {
    "an operation that cannot be captured": (RuntimeError("CUDA error: operation not permitted\nmore"), 2),
    "a full card": (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), 2),
    "no room for another step": (None, 1),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_training_goes_on_eagerly_if_a_step_cannot_be_captured(folder, cuda, capsys, failure):
    cuda.error, cuda.free = FAILURES[failure]
    shapes = Shapes(tokens=256, width=32)
    eager = steps_of(folder, "simcse", shapes, lambda update: EagerStep(update, compiles=False))
    found = steps_of(
        folder, "simcse", shapes, lambda update: CUDAGraphStep(Watched(update, cuda), compiles=False)
    )
    captures = 1 if cuda.error else 0
    assert Counter(cuda.events) == Counter({"capture": captures, "eager": STEPS})
    assert all(torch.equal(one, other) for (one, _), (other, _) in zip(eager[0], found[0], strict=True))
    assert all(torch.equal(value, found[1][name]) for name, value in eager[1].items())
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("steps are not captured: ")
    if cuda.error:
        said = f"{type(cuda.error).__name__}: {str(cuda.error).splitlines()[0]}"
        assert (
            lines[0]
            == f"steps are not captured: {said}. The training continues without capture, and takes longer."
        )


def test_large_steps_are_compiled_in_shorter_trainings(folder, monkeypatch):
    """By the sentences that they encode: two views of SimCSE, three of supervised SimCSE; never on a CPU."""
    monkeypatch.setattr(step, "can_compile", lambda: True)
    for method, views in (("simcse", 2), ("supervised_simcse", 3), ("promptbert", 2)):
        objective = prepared(blocks()[method], folder, SIZE, CPU).objective
        update = TrainStep(objective, training_of(SIZE), STEPS)
        bare = 2 * 16 if method == "promptbert" else 0  # templates, of at most as many lengths as sentences
        most = step.COMPILED_FROM // (views * SIZE.batch)
        least = step.COMPILED_FROM // (views * SIZE.batch + bare)
        assert not step.step_runner(update, NATURAL, 10 * most).compiles
        update.device = torch.device("cuda")
        assert step.step_runner(update, NATURAL, most + 1).compiles
        assert not step.step_runner(update, NATURAL, least - 1).compiles


@pytest.fixture
def uncompiled(monkeypatch):
    """Nothing is compiled before or after."""
    monkeypatch.setattr(packed, "COMPILER_FAILURES", [])
    compile_once = packed._compile
    compile_once.cache_clear()
    torch._dynamo.reset()
    yield
    compile_once.cache_clear()


def broken(_graph, _inputs):
    """A compiler that fails as Triton does without a C compiler."""
    raise RuntimeError("Failed to find C compiler. Please specify via CC environment variable.\nmore")


def test_a_training_goes_on_uncompiled_if_a_compilation_fails(folder, uncompiled, monkeypatch, capsys):
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=broken))
    found = [
        steps_of(folder, "jtcse", NATURAL, lambda update, on=on: EagerStep(update, compiles=on))
        for on in (False, True)
    ]
    assert all(torch.equal(one, other) for (one, _), (other, _) in zip(found[0][0], found[1][0], strict=True))
    assert all(torch.equal(value, found[1][1][name]) for name, value in found[0][1].items())
    said = "RuntimeError: Failed to find C compiler. Please specify via CC environment variable"
    expected = f"layers are not compiled: {said}. The work continues without compilation, and takes longer.\n"
    assert capsys.readouterr().err == expected


def test_out_of_memory_is_no_failure_of_the_compiler(folder, uncompiled, monkeypatch):
    """Out of memory in a compiled layer is no failure of the compiler."""

    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(packed, "_compile", lambda _function: full)
    with pytest.raises(torch.OutOfMemoryError):
        steps_of(folder, "simcse", NATURAL, lambda update: EagerStep(update, compiles=True))


@pytest.mark.parametrize("missing", ["gcc or clang", "a compiler in CC", "Python.h"])
def test_nothing_is_compiled_in_an_image_that_lacks_a_part(
    uncompiled, monkeypatch, capsys, tmp_path, missing
):
    monkeypatch.delenv("CC", raising=False)
    if missing == "Python.h":
        (tmp_path / "gcc").touch(mode=0o755)
        monkeypatch.setattr(packed.sysconfig, "get_paths", lambda: {"include": str(tmp_path)})
    elif missing == "a compiler in CC":
        monkeypatch.setenv("CC", "nowhere-cc")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not packed.can_compile()
    assert not packed.can_compile()
    (line,) = capsys.readouterr().err.splitlines()  # once
    place = {"a compiler in CC": "nowhere-cc", "Python.h": f"{tmp_path / 'Python.h'}"}.get(missing, missing)
    assert line.startswith("layers are not compiled: no ")
    assert place in line
