import itertools

import numpy as np
import pytest
import torch
from torch import nn

from workflow_scripts.models.dropout import Masks, keyed, keys_of, splitmix
from workflow_scripts.models.tokens import Packing

P = 0.1


def packing_of(*lengths, width=None):
    column = torch.arange(width or max(lengths))
    return Packing.of((column < torch.tensor(lengths)[:, None]).long())


def drawn(place=2, key=(7, 1), packing=None, size=384, p=P, **process):
    with keyed(keys_of(*key), **process):
        return Masks(packing or packing_of(*[20] * 100)).hidden(place, p, size)


def dropped(factors):
    return (factors == 0).double().flatten()


def test_splitmix_gives_the_published_sequence():
    """The first outputs from the state 1234567, as the generator's reference implementation prints them."""
    bits = splitmix(torch.arange(1, 6), 1234567).numpy().view(np.uint64)
    assert bits.tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


@pytest.mark.parametrize("p", [0.1, 0.5, 0.003])
def test_the_law_is_that_of_dropout(p):
    """Factors are 0 or 1 / (1 - p); their mean and variance are those of the law, over 768,000 elements."""
    factors = drawn(p=p)
    assert set(factors.unique().tolist()) == {0.0, torch.tensor(1 / (1 - p)).item()}
    zero = dropped(factors)
    error = (p * (1 - p) / len(zero)) ** 0.5
    assert abs(zero.mean().item() - p) < 4 * error
    assert abs(factors.double().mean().item() - 1) < 4 * error / (1 - p)


@pytest.mark.parametrize(
    "other",
    [{"place": 3}, {"key": (7, 2)}, {"key": (8, 1)}, {"key": (7, 1, 0)}],
    ids=["layer", "step", "seed", "length"],
)
def test_masks_of_other_steps_layers_and_seeds_are_independent(other):
    one, two = dropped(drawn()), dropped(drawn(**other))
    correlation = torch.corrcoef(torch.stack([one, two]))[0, 1].item()
    assert abs(correlation) < 4 / len(one) ** 0.5


def test_neighbours_are_independent():
    """Features of a token, tokens of a sentence, sentences of a batch: at the distances where numbers are alike."""
    zero = dropped(drawn()).view(100, 20, 384)
    for dim, shift in itertools.product(range(3), (1, 2, 4)):
        one, two = (
            zero.narrow(dim, 0, zero.shape[dim] - shift),
            zero.narrow(dim, shift, zero.shape[dim] - shift),
        )
        correlation = torch.corrcoef(torch.stack([one.flatten(), two.flatten()]))[0, 1].item()
        assert abs(correlation) < 4 / one.numel() ** 0.5, (dim, shift)


def test_passes_of_a_step_differ_and_a_step_repeats_itself():
    packing = packing_of(5, 3)
    with keyed(keys_of(1, 2)):
        first, second = (Masks(packing).hidden(0, P, 64) for _ in range(2))
    with keyed(keys_of(1, 2)):
        again = Masks(packing).hidden(0, P, 64)
    assert torch.equal(first, again)
    assert not torch.equal(first, second)


def test_a_mask_depends_on_its_sentence_and_token_and_not_on_padding():
    short, padded = (drawn(packing=packing_of(5, 3, 7, width=width)) for width in (7, 12))
    assert torch.equal(short, padded)
    assert torch.equal(short[:5], drawn(packing=packing_of(5)))
    with keyed(keys_of(7, 1)):
        narrow = Masks(packing_of(5, 3, 7)).attention(1, P, 4)
    with keyed(keys_of(7, 1)):
        wide = Masks(packing_of(5, 3, 7, width=12)).attention(1, P, 4)
    assert narrow.shape == (3, 4, 7, 7)
    assert torch.equal(narrow, wide[:, :, :7, :7])


def test_first_tokens_drop_what_they_drop_among_all_tokens():
    packing = packing_of(5, 3, 7)
    whole, first = [], []
    for found, alone in ((whole, False), (first, True)):
        with keyed(keys_of(7, 1)):
            masks = Masks(packing)
        found += [masks.hidden(2, P, 64, first=alone), masks.attention(1, P, 4, first=alone)]
    assert torch.equal(whole[0][packing.first_B], first[0])
    assert torch.equal(whole[1][:, :, :1], first[1])


def test_two_processes_drop_what_one_drops():
    whole = drawn(packing=packing_of(5, 3, 7, 2)).split([5, 3, 7, 2])
    for rank, rows in ((0, (0, 2)), (1, (1, 3))):
        lengths = [len(whole[row]) for row in rows]
        part = drawn(packing=packing_of(*lengths), rank=rank, ranks=2)
        assert torch.equal(part, torch.cat([whole[row] for row in rows]))


def test_layers_of_pytorch_are_keyed_too_and_by_process():
    layer, ones = nn.Dropout(0.5), torch.ones(200)
    found = []
    for rank in (0, 0, 1):
        with keyed(keys_of(3, 4), rank=rank):
            found.append(layer(ones))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_pytorchs_generator_goes_on_where_it_was():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    with keyed(keys_of(1, 1)):
        torch.rand(10)
    assert torch.equal(torch.rand(3), expected)


def test_outside_a_training_every_pass_draws_anew():
    packing = packing_of(5)
    assert not torch.equal(Masks(packing).hidden(0, 0.5, 64), Masks(packing).hidden(0, 0.5, 64))
