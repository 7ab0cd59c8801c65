import pytest
import torch

from workflow_scripts.models.dropout import DropoutMasks, dropout_keys, keys_of
from workflow_scripts.models.tokens import Packing, TokenBatch

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
    packing, token_BT = Packing.of(mask_of(lengths)), mask_of(lengths).bool()
    tokens_ND = torch.arange(12.0 * sum(lengths)).view(-1, 12)
    rows_BTD = packing.rows(tokens_ND)
    assert rows_BTD.shape == (len(lengths), max(lengths), 12)
    assert torch.equal(rows_BTD[token_BT], tokens_ND)
    apart = packing.heads(tokens_ND, 3, 2)
    together = rows_BTD.unflatten(2, (3, 2, 2)).permute(
        2, 0, 3, 1, 4
    )  # width, part, head and entry are told apart
    assert torch.equal(apart, together)
    assert apart.is_contiguous()
    (one,) = packing.heads(tokens_ND, 1, 4)
    assert torch.equal(packing.joined(one), tokens_ND)


def test_gradients_are_moved_back_and_padding_has_none():
    packing, token_BT = Packing.of(mask_of(LENGTHS)), mask_of(LENGTHS).bool()
    draw = torch.Generator().manual_seed(0)
    tokens_ND = torch.randn(sum(LENGTHS), 6, generator=draw, dtype=torch.float64, requires_grad=True)
    rows_BHTE = torch.randn(4, 2, 5, 3, generator=draw, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: packing.rows(x)[token_BT], tokens_ND)
    assert torch.autograd.gradcheck(lambda x: packing.heads(x, 3, 2).transpose(2, 3)[:, token_BT], tokens_ND)
    assert torch.autograd.gradcheck(packing.joined, rows_BHTE)
    packing.joined(rows_BHTE).sum().backward()
    assert torch.equal(rows_BHTE.grad.any(dim=3), token_BT[:, None].expand(-1, 2, -1))


def hidden(masks, *size):
    return masks.hidden(masks.sites(0, 1)[0], *size)


def test_sentences_that_every_process_has_follow_a_processs_own():
    own = TokenBatch(torch.tensor([[5, 6, 7]]), torch.ones(1, 3, dtype=torch.int64))
    shared = TokenBatch(torch.tensor([[5, 8, 6, 7], [5, 7, 0, 0]]), mask_of([4, 2]))
    both = TokenBatch.joined([own, shared], pad_id=9)
    assert both.ids_BT.tolist() == [[5, 6, 7, 9], [5, 8, 6, 7], [5, 7, 0, 0]]
    assert both.mask_BT.sum(dim=1).tolist() == [3, 4, 2]
    packing = Packing.of(both.mask_BT, local=1)
    with dropout_keys(keys_of(1, 1), rank=1, ranks=2):
        here = hidden(DropoutMasks(packing), 0.5, 64)
    with dropout_keys(keys_of(1, 1), rank=0, ranks=2):
        there = hidden(DropoutMasks(packing), 0.5, 64)
    with dropout_keys(keys_of(1, 1), rank=1, ranks=2):
        alone = hidden(DropoutMasks(own.packed()), 0.5, 64)
    assert torch.equal(here[:3], alone)
    assert not torch.equal(here[:3], there[:3])
    with dropout_keys(keys_of(1, 1), rank=0, ranks=2):
        behind_two = hidden(DropoutMasks(Packing.of(mask_of([2, 1, 4, 2]), local=2)), 0.5, 64)
    assert torch.equal(here[3:], there[3:])
    assert torch.equal(here[3:], behind_two[3:])
