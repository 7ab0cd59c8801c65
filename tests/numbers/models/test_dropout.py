import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from workflow_scripts.errors import ConfigError
from workflow_scripts.models.dropout import DropoutMasks, dropout_keys, keys_of, patched_dropout, splitmix
from workflow_scripts.models.tokens import Packing

P = 0.1


def packing_of(*lengths, width=None):
    column = torch.arange(width or max(lengths))
    return Packing.of((column < torch.tensor(lengths)[:, None]).long())


def hidden(masks, site, *size, **first):
    return masks.hidden(masks.sites(site, 1)[0], *size, **first)


def attention(masks, site, *size, **first):
    return masks.attention(masks.sites(site, 1)[0], *size, **first)


def drawn(site=2, key=(7, 1), packing=None, size=384, p=P, **process):
    with dropout_keys(keys_of(*key), **process):
        return hidden(DropoutMasks(packing or packing_of(*[20] * 100)), site, p, size)


def dropped(factors):
    return (factors == 0).double().flatten()


def test_splitmix_gives_the_published_sequence():
    """The first outputs from the state 1234567, as the generator's reference implementation prints them."""
    bits = splitmix(torch.arange(1, 6), torch.tensor(1234567)).numpy().view(np.uint64)
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
    [{"site": 3}, {"key": (7, 2)}, {"key": (8, 1)}, {"key": (7, 1, 0)}],
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
    with dropout_keys(keys_of(1, 2)):
        first, second = (hidden(DropoutMasks(packing), 0, P, 64) for _ in range(2))
    with dropout_keys(keys_of(1, 2)):
        again = hidden(DropoutMasks(packing), 0, P, 64)
    assert torch.equal(first, again)
    assert not torch.equal(first, second)


def test_a_mask_depends_on_sentence_and_token_not_padding():
    """A mask depends on its sentence and token and not on padding."""
    short, padded = (drawn(packing=packing_of(5, 3, 7, width=width)) for width in (7, 12))
    assert torch.equal(short, padded)
    assert torch.equal(short[:5], drawn(packing=packing_of(5)))
    with dropout_keys(keys_of(7, 1)):
        narrow = attention(DropoutMasks(packing_of(5, 3, 7)), 1, P, 4)
    with dropout_keys(keys_of(7, 1)):
        wide = attention(DropoutMasks(packing_of(5, 3, 7, width=12)), 1, P, 4)
    assert narrow.shape == (3, 4, 7, 7)
    assert torch.equal(narrow, wide[:, :, :7, :7])


def test_first_tokens_drop_what_they_drop_among_all_tokens():
    packing = packing_of(5, 3, 7)
    whole, first = [], []
    for found, alone in ((whole, False), (first, True)):
        with dropout_keys(keys_of(7, 1)):
            masks = DropoutMasks(packing)
        found += [hidden(masks, 2, P, 64, first=alone), attention(masks, 1, P, 4, first=alone)]
    assert torch.equal(whole[0][packing.first_B], first[0])
    assert torch.equal(whole[1][:, :, :1], first[1])


def test_two_processes_drop_what_one_drops():
    whole = drawn(packing=packing_of(5, 3, 7, 2)).split([5, 3, 7, 2])
    for rank, rows in ((0, (0, 2)), (1, (1, 3))):
        lengths = [len(whole[row]) for row in rows]
        part = drawn(packing=packing_of(*lengths), rank=rank, ranks=2)
        assert torch.equal(part, torch.cat([whole[row] for row in rows]))


STATES = torch.ones(3, 7, 64)
SCORES = torch.ones(3, 4, 7, 7)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: nn.Dropout(0.5)(STATES),
        lambda: F.dropout(SCORES, 0.3),
        lambda: nn.RReLU()(-STATES),
        lambda: F.scaled_dot_product_attention(
            STATES[:, None], STATES[:, None], torch.arange(64.0).expand(3, 1, 7, 64), dropout_p=0.5
        ),
    ],
    ids=["hidden states", "weights", "slopes", "attention"],
)
def test_functions_of_pytorch_draw_by_key_pass_call_and_process(draw):
    """Draws do not depend on the state of PyTorch's generator, and do not change it."""

    def found(*key, passes=1, calls=1, **process):
        torch.manual_seed(next(seeds))
        before = torch.random.get_rng_state()
        with dropout_keys(keys_of(*key), **process):
            for _ in range(passes):
                masks = DropoutMasks(packing_of(5, 3, 7))
            with patched_dropout(masks):
                for _ in range(calls):
                    values = draw()
        assert torch.equal(torch.random.get_rng_state(), before)
        return values

    seeds = itertools.count()
    one = found(3, 4)
    assert torch.equal(found(3, 4), one)
    others = found(3, 5), found(3, 4, passes=2), found(3, 4, calls=2), found(3, 4, rank=1, ranks=2)
    assert not any(torch.equal(other, one) for other in others)


def test_attention_that_drops_keeps_the_kept_weights():
    """A probability of 2^-32 keeps all: causal, masked and with fewer heads of keys, as PyTorch computes it."""
    draw = torch.Generator().manual_seed(1)
    query, key, value = (torch.randn(3, heads, 7, 16, generator=draw) for heads in (4, 2, 2))
    keep = torch.rand(3, 1, 7, 7, generator=draw) > 0.3
    keep[..., 0] = True
    for options in (
        {"is_causal": True},
        {"attn_mask": keep},
        {"attn_mask": keep.float().log()},
        {"scale": 0.7},
    ):
        expected = F.scaled_dot_product_attention(query, key, value, **options, enable_gqa=True)
        with dropout_keys(keys_of(1)), patched_dropout(DropoutMasks(packing_of(5, 3, 7))):
            found = F.scaled_dot_product_attention(
                query, key, value, **options, dropout_p=2**-32, enable_gqa=True
            )
        torch.testing.assert_close(found, expected)


def test_slopes_are_uniform_where_values_are_negative():
    """Slopes are uniform where values are negative and padding changes none."""

    def slopes(width):
        with dropout_keys(keys_of(3)), patched_dropout(DropoutMasks(packing_of(*[7] * 200, width=width))):
            return -nn.RReLU()(-torch.ones(200, width, 64))[:, :7]

    found = slopes(7)
    assert torch.equal(found, slopes(12))
    assert 1 / 8 <= found.min() < 0.126
    assert 0.332 < found.max() < 1 / 3
    error = (1 / 3 - 1 / 8) / (12 * found.numel()) ** 0.5
    assert abs(found.double().mean().item() - (1 / 8 + 1 / 3) / 2) < 4 * error
    with dropout_keys(keys_of(3)), patched_dropout(DropoutMasks(packing_of(7))):
        assert torch.equal(nn.RReLU()(torch.ones(1, 7, 64)), torch.ones(1, 7, 64))


def test_what_no_key_decides_is_refused():
    with (
        dropout_keys(keys_of(3)),
        patched_dropout(DropoutMasks(packing_of(7))),
        pytest.raises(ConfigError, match="draws by rand,"),
    ):
        torch.rand(3)


def test_outside_a_training_every_pass_draws_anew():
    packing = packing_of(5)
    assert not torch.equal(
        hidden(DropoutMasks(packing), 0, 0.5, 64), hidden(DropoutMasks(packing), 0, 0.5, 64)
    )
