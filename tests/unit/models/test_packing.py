import pytest
import torch

from workflow_scripts.models.dropout import Masks, keyed
from workflow_scripts.models.packing import Packing
from workflow_scripts.models.tokens import TokenBatch

LENGTHS = [3, 1, 5, 2]


def mask_of(lengths, width=None):
    column = torch.arange(width or max(lengths))
    return (column < torch.tensor(lengths)[:, None]).long()


def test_the_places_of_a_batch_written_out():
    packing = Packing.of(mask_of([2, 3, 1]))
    assert packing.places_N.tolist() == [0, 1, 3, 4, 5, 6]
    assert packing.token_rows.tolist() == [0, 0, 1, 1, 1, 2]
    assert packing.token_columns.tolist() == [0, 1, 0, 1, 2, 0]
    assert packing.first_B.tolist() == [0, 2, 5]
    assert packing.bias_B11T[:, 0, 0].tolist() == [[0, 0, -torch.inf], [0, 0, 0], [0, -torch.inf, -torch.inf]]
    assert packing.padded
    assert not Packing.of(mask_of([2, 2])).padded


@pytest.mark.parametrize("lengths", [LENGTHS, [4, 4]])
def test_rows_are_tokens_moved_and_back(lengths):
    packing = Packing.of(mask_of(lengths))
    tokens_N3 = torch.arange(3.0 * sum(lengths)).view(-1, 3)
    rows_BT3 = packing.rows(tokens_N3)
    assert rows_BT3.shape == (len(lengths), max(lengths), 3)
    assert torch.equal(rows_BT3[mask_of(lengths).bool()], tokens_N3)
    assert torch.equal(packing.tokens(rows_BT3), tokens_N3)


def test_gradients_are_moved_back_and_padding_has_none():
    packing = Packing.of(mask_of(LENGTHS))
    draw = torch.Generator().manual_seed(0)
    tokens_N3 = torch.randn(sum(LENGTHS), 3, generator=draw, dtype=torch.float64, requires_grad=True)
    padded_BT3 = torch.randn(4, 5, 3, generator=draw, dtype=torch.float64, requires_grad=True)
    token_BT = mask_of(LENGTHS).bool()
    assert torch.autograd.gradcheck(lambda x: packing.rows(x)[token_BT], tokens_N3)
    assert torch.autograd.gradcheck(packing.tokens, padded_BT3)
    packing.tokens(padded_BT3).sum().backward()
    assert torch.equal(padded_BT3.grad.any(dim=2), token_BT)


def test_a_batch_that_is_copied_to_a_device_takes_its_packing_along():
    packing = Packing.of(mask_of(LENGTHS))
    there = packing.to(torch.device("meta"))
    assert there.places_N.device.type == "meta"
    assert (there.width, there.padded) == (packing.width, packing.padded)


def test_sentences_that_every_process_has_follow_a_processs_own():
    own = TokenBatch(torch.tensor([[5, 6, 7]]), torch.ones(1, 3, dtype=torch.int64))
    shared = TokenBatch(torch.tensor([[5, 8, 6, 7], [5, 7, 0, 0]]), mask_of([4, 2]))
    together = own.followed_by(shared)
    assert together.ids_BT.tolist() == [[5, 6, 7, 0], [5, 8, 6, 7], [5, 7, 0, 0]]
    assert together.mask_BT.sum(dim=1).tolist() == [3, 4, 2]
    assert together.packing.own == 1
    with keyed(1, 1, rank=1, ranks=2):
        here = Masks(together.packing).hidden(0, 0.5, 64)
    with keyed(1, 1, rank=0, ranks=2):
        there = Masks(together.packing).hidden(0, 0.5, 64)
    with keyed(1, 1, rank=1, ranks=2):
        alone = Masks(own.packed()).hidden(0, 0.5, 64)
    assert torch.equal(here[:3], alone) and not torch.equal(here[:3], there[:3])
    assert torch.equal(here[3:], there[3:])
