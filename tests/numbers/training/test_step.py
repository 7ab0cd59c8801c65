"""Capture and replay of steps, with stand-ins for CUDA graphs that run the update again."""

from collections import Counter
from contextlib import contextmanager, nullcontext

import pytest
import torch

from tests import walk
from tests.material import SMALL, blocks, prepared, training, write_encoder
from workflow_scripts.models.tokens import NATURAL, Shapes
from workflow_scripts.training import step
from workflow_scripts.training.step import Captured, Eager, Update, host_half

SIZE = SMALL._replace(layers=2)
STEPS, RATE = 10, 1e-3
CPU = torch.device("cpu")
pytestmark = pytest.mark.usefixtures("torch_settings")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("step")
    write_encoder(folder, SIZE)
    return folder


def test_steps_are_captured_unless_a_readout_reads_padding(folder, capsys):
    readouts = walk.readouts()
    found = {
        name: step.shapes_for(torch.device("cuda"), walk.encoder_with(folder, readout), None)
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

    def CUDAGraph(self):  # noqa: N802
        return _Graph(self)

    @contextmanager
    def graph(self, graph, *, pool, stream, capture_error_mode):
        assert isinstance(stream, Stream)
        assert capture_error_mode == "thread_local"  # another thread pins memory meanwhile
        assert pool == (None if "capture" not in self.events else "pool")
        self.recording = graph
        yield
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
        "stream": lambda _stream: nullcontext(),
    }.items():  # fmt: skip
        monkeypatch.setattr(torch.cuda, name, value)
    return cuda


def steps_of(folder, method, shapes, run_of):
    """Results of ten steps, the weights after them, and the inputs; ``run_of`` makes a runner of an update."""
    objective = prepared(blocks()[method], folder, SIZE, CPU, shapes=shapes).objective
    run = run_of(Update(objective, training(SIZE, max_steps=STEPS), STEPS))
    inputs = [host_half(objective, 1, number) for number in range(1, STEPS + 1)]
    left = [run(one, RATE / number) for number, one in enumerate(inputs, start=1)]
    return left, objective.module.state_dict(), [step._shape(one) for one in inputs]


@pytest.mark.parametrize(
    ("method", "tokens", "most"),
    [("simcse", 16, 12), ("simcse_3r", 256, 12), ("promptbert", 256, 12), ("simcse", 16, 1)],
)
def test_a_shape_that_occurs_again_is_captured_and_replayed_with_the_results_of_steps_that_are_not(
    folder, cuda, monkeypatch, method, tokens, most
):
    monkeypatch.setattr(step, "MOST_GRAPHS", most)
    shapes = Shapes(tokens=tokens, width=32)
    eager = steps_of(folder, method, shapes, lambda update: Eager(update, compiles=False))
    replayed = steps_of(
        folder, method, shapes, lambda update: Captured(Watched(update, cuda), compiles=False)
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
