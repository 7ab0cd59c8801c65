"""The device's half of a step, for every method and every readout: it draws by keys alone and asks the host nothing."""

import pytest
import torch

from tests import walk
from tests.material import is_trained
from tests.steps import found_in
from workflow_scripts.models.tokens import NATURAL, Shapes

BLOCKS = {name: block for name, block in walk.blocks().items() if is_trained(block)}
READ = {
    f"{under}, read as {name}": BLOCKS[under] | {"head_at_test": False, "readout": readout}
    for name, readout in walk.readouts().items()
    for under in ("simcse", "diffcse")
    if name not in BLOCKS and readout.get("pooling") != "mask" and (under == "simcse" or "layeratt" in name)
}
PADDED = [name for name in READ if name.endswith((".code", ".code_dct"))]
"""Readouts of padded states, which are never captured."""
ROUNDED, FIXED = Shapes(tokens=32, width=16), Shapes(tokens=1024, width=16)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("encoders")


def objective_of(folder, name, shapes=NATURAL):
    block = walk.with_members(folder, (BLOCKS | READ)[name])
    objective = walk.made(folder, block, shapes=shapes).objective
    objective.module.train()
    return objective


def test_all_methods_and_readouts_are_walked():
    assert len(BLOCKS) >= 21
    assert len(READ) >= 20
    assert len(PADDED) == 2


@pytest.mark.parametrize("name", [*BLOCKS, *READ])
def test_another_state_of_pytorchs_generator_changes_no_bit(folder, name):
    objective = objective_of(folder, name)
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        found.append(found_in(objective, 1))
    assert [key for key, one in found[0].items() if not torch.equal(one, found[1][key])] == []
    others = found_in(objective, 2)
    assert not torch.equal(others["loss"], found[0]["loss"])


@pytest.mark.parametrize("name", [name for name in (*BLOCKS, *READ) if name not in PADDED])
def test_rounded_shapes_change_no_loss_and_no_gradient(folder, name):
    natural, rounded = (found_in(objective_of(folder, name, shapes)) for shapes in (NATURAL, ROUNDED))
    torch.testing.assert_close(rounded, natural, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", [*BLOCKS, *READ])
def test_a_step_compiles_whole_and_only_once(folder, name):
    """A step that asked for a tensor's value would break the graph, one that changed in Python would compile again."""
    objective = objective_of(folder, name, NATURAL if name in PADDED else FIXED)
    torch._dynamo.reset()
    compiled = torch.compile(objective.loss, backend="aot_eager", fullgraph=True, dynamic=False)
    for step in (1, 2):
        expected = found_in(objective, step)
        with torch._dynamo.config.patch(error_on_recompile=step > 1):
            torch.testing.assert_close(
                found_in(objective, step, loss=compiled), expected, rtol=1e-4, atol=1e-6
            )
