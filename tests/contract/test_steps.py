"""The device's half of a step, for every method and reading: it draws by keys alone and asks the host nothing."""

from functools import partial

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import masking_utils

from tests.support.steps_by_hand import found_in
from tests.support.toy_objectives import CASES, PADDED, objective_of
from workflow_scripts.models.tokens import NATURAL, Shapes

ROUNDED, FIXED = Shapes(tokens=32, width=16), Shapes(tokens=1024, width=16)
QUICK = ("simcse_3r", "continue_mlm")
"""Rounded and compiled in the short suite, too."""
EACH = [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in CASES]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("encoders")


def test_all_methods_and_readings_are_walked():
    assert len(CASES) >= 45
    assert {*PADDED, *QUICK} <= CASES.keys()


WAITS = {
    torch.ops.aten._local_scalar_dense.default: "the value of a tensor",
    torch.ops.aten.lift_fresh.default: "a tensor of numbers of the host",
    torch.ops.aten.nonzero.default: "a shape that depends on values",
}
"""Operations for which the host waits for a GPU, and which no CUDA graph can hold."""


class Asking(TorchDispatchMode):
    """Refuses them."""

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        assert op not in WAITS, WAITS[op]
        return op(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", CASES)
def test_a_step_draws_by_keys_and_asks_a_device_for_nothing(folder, name, monkeypatch):
    """A step draws only by keys, and asks a device for nothing."""
    monkeypatch.setattr(masking_utils, "is_tracing", lambda *_: True)  # as in a capture
    objective = objective_of(folder, name)

    def loss(inputs):
        with Asking():
            return objective.loss(inputs)

    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        found.append(found_in(objective, loss=loss))
    assert [key for key, one in found[0].items() if not torch.equal(one, found[1][key])] == []
    assert not torch.equal(found_in(objective, step=2)["loss"], found[0]["loss"])


@pytest.mark.parametrize("name", [case for case in EACH if case.values[0] not in PADDED])
def test_rounded_shapes_change_no_loss_and_no_gradient(folder, name):
    natural, rounded = (found_in(objective_of(folder, name, shapes)) for shapes in (NATURAL, ROUNDED))
    # A ratio of scores that may be near 0 magnifies rounding (``weights: ratio``, ``diagonal``).
    torch.testing.assert_close(rounded, natural, rtol=1e-4, atol=1e-4 if name.endswith("printed") else 1e-5)


@pytest.mark.parametrize("name", EACH)
def test_a_step_compiles_whole_and_only_once(folder, name):
    """A step that asked for a tensor's value would break the graph, one that changed in Python would compile again."""
    objective = objective_of(folder, name, NATURAL if name in PADDED else FIXED)
    torch._dynamo.reset()
    compiled = torch.compile(objective.loss, backend="eager", fullgraph=True, dynamic=False)
    for step in (1, 2):
        expected = found_in(objective, step)
        with torch._dynamo.config.patch(error_on_recompile=step > 1):
            found = found_in(objective, step, loss=compiled)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_compiled_layers_have_the_gradients_of_those_as_they_are(folder, monkeypatch):
    """One compilation serves all layers, and later steps; without kernels, which a card makes otherwise (tests/gpu)."""
    from workflow_scripts.models import packed

    torch._dynamo.reset()
    packed._compile.cache_clear()
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    objective = objective_of(folder, "simcse", ROUNDED)
    for step in (1, 2):
        expected = found_in(objective, step)
        with packed.compiled(), torch._dynamo.config.patch(error_on_recompile=step > 1):
            torch.testing.assert_close(found_in(objective, step), expected, rtol=1e-4, atol=1e-5)
