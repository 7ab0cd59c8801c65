"""Gradient caching: the loss and the gradients of the whole batch, from a few sentences at a time."""

import pytest
import torch

from tests.support import small_methods, toy_methods
from tests.support.steps_by_hand import step_of
from workflow_scripts.models.dropout import dropout_keys, keys_of
from workflow_scripts.models.tokens import TokenBatch
from workflow_scripts.settings.methods import read_method
from workflow_scripts.training.chunks import in_chunks
from workflow_scripts.training.data import TrainingData

BLOCKS = {name: block for name, block in small_methods.blocks().items() if toy_methods.is_trained(block)}
WHY_NOT = {
    "diffcse": "diffcse's discriminator reads the batch again",
}
"""Why some methods (parts of their blocks' names) cannot be read in chunks."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("encoders")


def refusals(block):
    return [*map(str, read_method(block, "methods").chunk_errors())]


def found(folder, block, chunk):
    """Loss, gradients and metrics of a step, in float64."""
    objective = toy_methods.prepared(
        block,
        small_methods.bert(folder).parent,
        small_methods.SIZE,
        small_methods.CPU,
        small_methods.ROWS,
        chunk=chunk,
    ).objective
    module = objective.module.double().train()
    with dropout_keys(keys_of(1, 1)):
        loss, metrics = step_of(objective, 1)
    loss.backward()
    values = {name: p.grad for name, p in module.named_parameters() if p.grad is not None}
    measured = {name: torch.tensor(float(value)) for name, value in metrics.items()}
    return {"loss": loss.detach(), **values, **measured}


@pytest.mark.parametrize("name", BLOCKS)
def test_chunks_have_the_gradients_of_the_batch_or_are_refused(folder, name):
    """Dropout as the method has it, and a last chunk of its own size: 8, 16 or 24 sentences by five."""
    block = small_methods.with_members(folder, BLOCKS[name])
    expected = next((why for part, why in WHY_NOT.items() if part in name), None)
    if expected:
        assert refusals(block)[0].startswith(f"training.chunk: {expected}")
        return
    assert not refusals(block)
    whole, chunked = (found(folder, block, chunk) for chunk in (None, 5))
    assert whole.keys() == chunked.keys()
    assert len(whole) > 20
    for part, value in whole.items():
        torch.testing.assert_close(chunked[part], value, rtol=1e-9, atol=1e-9, msg=part, equal_nan=True)


def test_a_chunk_is_read_twice_and_a_vector_at_a_time_is_kept():
    """h = w x, L = h_1 h_2 h_3: dL/dw = 3 w^2 x_1 x_2 x_3, whatever the chunks; by hand 3 * 4 * 30."""
    weight, seen = torch.tensor(2.0, requires_grad=True), []

    def read(batch):
        seen.append(batch.ids_BT.flatten().tolist())
        return weight * batch.ids_BT.float()

    batch = TokenBatch(torch.tensor([[2], [3], [5]]), torch.ones(3, 1, dtype=torch.long))
    for size, passes in ((2, [[2, 3], [5], [5], [2, 3]]), (3, [[2, 3, 5]]), (None, [[2, 3, 5]])):
        seen.clear()
        weight.grad = None
        chunks = TrainingData({}, None, 3, None, chunk=size).ready(batch)
        loss = in_chunks(read, chunks).prod()
        loss.backward()
        assert (loss.item(), weight.grad.item()) == (8 * 30, 3 * 4 * 30)
        assert seen == passes
