"""S2Sent's selector against closed forms, hand-worked numbers and its equations written out as loops."""

import math

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from transformers import BertConfig

from workflow_scripts.models.readouts import build_readout
from workflow_scripts.models.readouts.s2sent import (
    FREQUENCIES,
    block_basis,
    cells,
    grid_basis,
    squeeze,
    token_basis,
)
from workflow_scripts.models.tokens import TokenBatch
from workflow_scripts.settings.readouts import S2Sent

CPU = torch.device("cpu")
BLOCK = {
    "kind": "s2sent", "blocks": 3, "last_block": True, "fusion": "stack", "pooling": "avg", "squeeze": "dct",
    "frequencies": 4, "frequency_set": "figure", "dct": "mean", "reduction": 4, "activation": "relu",
    "bias": False, "batch_norm": False, "gate": "softmax",
}  # fmt: skip


def fresh(width=16, depth=4, **changes):
    torch.manual_seed(0)
    config = S2Sent.parse(BLOCK | changes, "readout")
    backbone = BertConfig(hidden_size=width, num_hidden_layers=depth, num_attention_heads=1)
    return build_readout(config, backbone).double().eval()


def make(*arguments, **changes):
    """A readout with ten times the initial weights, so that gates differ."""
    readout = fresh(*arguments, **changes)
    for layer in (readout.reduce, readout.expand):
        layer.weight.data *= 10
    return readout


def states(depth=4, sentences=2, tokens=5, width=16, seed=0):
    draw = torch.Generator().manual_seed(seed)
    return tuple(
        torch.randn(sentences, tokens, width, generator=draw, dtype=torch.float64) for _ in range(depth + 1)
    )


def batch_of(*lengths):
    mask = torch.tensor([[1] * length + [0] * (max(lengths) - length) for length in lengths])
    return TokenBatch(torch.full_like(mask, 7), mask)


def alpha(a, b, blocks, length):
    """Eq. 5, entry by entry."""
    return torch.tensor(
        [
            [
                math.cos(math.pi * a / blocks * (i + 0.5)) * math.cos(math.pi * b / length * (j + 0.5))
                for j in range(length)
            ]
            for i in range(blocks)
        ],
        dtype=torch.float64,
    )


# Frequency selection


def test_the_squeeze_is_equation_10_on_the_own_length():
    """Written out as loops over sentences, parts and places; `sum` is the equation, `mean` divides it by N L."""
    stack = torch.stack(states()[1:], dim=1)
    lengths, frequencies = (5, 3), FREQUENCIES["figure"][:8]
    expected = torch.zeros(2, 16, dtype=torch.float64)
    for row, length in enumerate(lengths):
        for part, (a, b) in enumerate(frequencies):
            for feature in range(2 * part, 2 * part + 2):
                weighted = stack[row, :, :length, feature] * alpha(a, b, 4, length)
                expected[row, feature] = weighted.sum()
    mask = batch_of(*lengths).mask_BT
    torch.testing.assert_close(
        squeeze(stack, mask, torch.tensor(frequencies), "sum"), expected, rtol=1e-5, atol=1e-6
    )
    scaled = expected / (4 * torch.tensor(lengths).unsqueeze(1))
    torch.testing.assert_close(
        squeeze(stack, mask, torch.tensor(frequencies), "mean"), scaled, rtol=1e-5, atol=1e-6
    )


def test_one_frequency_is_the_average_over_blocks_and_tokens():
    """O-23."""
    stack = torch.stack(states()[1:], dim=1)
    mask = batch_of(5, 3).mask_BT
    for part, (row, length) in zip(
        squeeze(stack, mask, torch.tensor([(0, 0)]), "mean"), enumerate((5, 3)), strict=True
    ):
        torch.testing.assert_close(part, stack[row, :, :length].mean(dim=(0, 1)))
    summed = squeeze(stack, mask, torch.tensor([(0, 0)]), "sum")
    torch.testing.assert_close(summed[1], 4 * 3 * stack[1, :, :3].mean(dim=(0, 1)))
    gap, low1 = make(squeeze="gap"), make(frequencies=1)
    torch.testing.assert_close(
        gap.read(states(), *batch_of(5, 3)[:2]), low1.read(states(), *batch_of(5, 3)[:2])
    )


@pytest.mark.parametrize("frequency", [(0, 1), (1, 0), (1, 1), (0, 2), (2, 0)])
def test_of_a_constant_only_the_lowest_frequency_is_left(frequency):
    """O-24: N L times the constant at (0, 0), nothing elsewhere."""
    constant = torch.full((1, 3, 7, 2), 5.0)
    mask = torch.ones(1, 7)
    assert squeeze(constant, mask, torch.tensor([(0, 0)]), "sum").tolist() == [[105.0, 105.0]]
    assert squeeze(constant, mask, torch.tensor([frequency]), "sum").abs().max() < 1e-4


def test_norms_of_the_basis():
    """O-25: N = 3, L = 7."""
    rows, columns = (
        block_basis(torch.tensor([0, 1]), 3, "sum"),
        token_basis(torch.tensor([0, 1]), torch.ones(1, 7), False)[0],
    )
    norms = [
        (rows[a, :, None] * columns[b][None]).square().sum().item()
        for a, b in ((0, 0), (0, 1), (1, 0), (1, 1))
    ]
    assert norms == pytest.approx([21, 10.5, 10.5, 5.25], rel=1e-5)


def test_frequencies_that_too_few_blocks_cannot_carry():
    """O-26: they vanish or repeat lower ones as printed; the default takes them on six cells instead."""
    assert block_basis(torch.tensor([1, 2]), 1, "sum").flatten().tolist() == pytest.approx([0, -1], abs=1e-6)
    three = block_basis(torch.tensor([2, 3, 4]), 3, "sum")
    assert three[1].tolist() == pytest.approx([0, 0, 0], abs=1e-6)
    torch.testing.assert_close(three[2], -three[0], rtol=0, atol=1e-6)
    resampled = block_basis(torch.tensor([3, 4]), 3, "mean")
    six = block_basis(torch.tensor([3, 4]), 6, "mean")
    torch.testing.assert_close(resampled, six.view(2, 3, 2).sum(dim=2))  # each block fills two cells
    assert resampled.abs().max() > 0.1
    assert resampled[1].tolist() == pytest.approx([-1 / 12, 1 / 6, -1 / 12], abs=1e-6)
    # One block is constant on any number of cells.
    assert block_basis(torch.tensor([1, 2]), 1, "mean").abs().max() < 1e-6


def test_three_blocks_have_the_frequencies_as_printed():
    """O-26: Figure 6's sixteen frequencies of three blocks under Equation 10, over N L; worked by hand."""
    third = math.sqrt(3) / 6
    expected = [[1 / 3] * 3, [third, 0, -third], [1 / 6, -1 / 3, 1 / 6], [0] * 3, [-1 / 6, 1 / 3, -1 / 6]]
    found = block_basis(torch.tensor([0, 1, 2, 3, 4]), 3, "printed")
    torch.testing.assert_close(found, torch.tensor(expected), rtol=0, atol=1e-6)
    stack = torch.stack(states()[2:], dim=1)
    printed = squeeze(stack, batch_of(5, 3).mask_BT, torch.tensor(FREQUENCIES["figure"]), "printed")
    for part, (a, b) in enumerate(FREQUENCIES["figure"]):
        weighted = (stack[1, :, :3, part] * alpha(a, b, 3, 3)).sum() / 9
        assert printed[1, part].item() == pytest.approx(weighted.item(), abs=1e-6)
    off = (
        (printed - squeeze(stack, batch_of(5, 3).mask_BT, torch.tensor(FREQUENCIES["figure"]), "mean"))
        .abs()
        .amax(dim=0)
    )
    assert [FREQUENCIES["figure"][part] for part in range(16) if off[part] > 1e-6] == [(4, 0)]


def test_the_inverse_with_its_weights_gives_the_states_back():
    """O-27; Equation 5's inverse as printed, without weights, does not."""
    torch.manual_seed(1)
    blocks, length = 3, 7
    x = torch.randn(1, blocks, length, 1, dtype=torch.float64)
    every = [(a, b) for a in range(blocks) for b in range(length)]
    spread = x.expand(-1, -1, -1, len(every))
    coefficients = squeeze(spread, torch.ones(1, length, dtype=torch.float64), torch.tensor(every), "sum")[0]
    printed, weighted = torch.zeros(2, blocks, length, dtype=torch.float64)
    for (a, b), value in zip(every, coefficients, strict=True):
        printed += value * alpha(a, b, blocks, length)
        weights = (1 if a == 0 else 2) * (1 if b == 0 else 2) / (blocks * length)
        weighted += value * weights * alpha(a, b, blocks, length)
    torch.testing.assert_close(weighted, x[0, :, :, 0], rtol=0, atol=1e-5)
    assert (printed - x[0, :, :, 0]).abs().max() > 0.1


def test_the_basis_of_the_code_has_unit_norm():
    """O-28."""
    basis = grid_basis(torch.arange(6), 6)
    torch.testing.assert_close(basis @ basis.T, torch.eye(6), rtol=0, atol=1e-6)
    lowest = basis[0][:, None] * basis[0][None]
    torch.testing.assert_close(lowest, torch.full((6, 6), 1 / 6))
    stack = torch.randn(1, 6, 6, 2)
    torch.testing.assert_close(
        squeeze(stack, torch.ones(1, 6), torch.tensor([(0, 0)]), "grid"), 6 * stack.mean(dim=(1, 2))
    )


def test_pooling_into_cells_weighs_edges_less():
    """O-29."""
    expected = torch.tensor([0.5, 1, 1, 1, 1, 1, 0.5]) / 6
    # Cells of 7 overlap by one token: an inner token counts half in two cells.
    torch.testing.assert_close(cells(7, CPU).mean(dim=0), expected)
    torch.testing.assert_close(cells(12, CPU).mean(dim=0), torch.full((12,), 1 / 12))


FIGURE_4 = [
    (0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (1, 2), (2, 0), (2, 1),
    (0, 3), (0, 4), (1, 3), (1, 4), (2, 2), (3, 0), (3, 1), (4, 0),
]  # fmt: skip
FCANET = [
    (0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (2, 0), (2, 1), (1, 2),
    (2, 2), (0, 3), (3, 0), (4, 0), (0, 4), (1, 3), (3, 1), (0, 5),
]  # fmt: skip


@pytest.mark.parametrize("count", [1, 2, 4, 8, 16])
@pytest.mark.parametrize(("name", "order"), [("figure", FIGURE_4), ("fcanet", FCANET)])
def test_each_frequency_squeezes_its_own_part_of_the_features(name, order, count):
    """O-35: in the order of Figure 4 or of the code, part by part, against Eq. 5 entry by entry."""
    readout = make(frequencies=count, frequency_set=name)
    stack = torch.stack(states(depth=6)[1:], dim=1)
    found = squeeze(stack, batch_of(5, 5).mask_BT, readout.frequencies, "sum")
    wide = 16 // count
    for part in range(count):
        features = slice(part * wide, (part + 1) * wide)
        weighted = stack[..., features] * alpha(*order[part], 6, 5)[None, :, :, None]
        torch.testing.assert_close(found[:, features], weighted.sum(dim=(1, 2)), rtol=1e-5, atol=1e-5)


# Spatial selection


def test_equations_2_to_4_written_out_as_loops():
    readout = make()
    hidden, batch = states(), batch_of(5, 3)
    found = readout.read(hidden, *batch[:2])
    w1, w2 = readout.reduce.weight, readout.expand.weight.view(3, 16, 4)
    blocks = torch.stack(hidden[-3:], dim=1)
    for row, length in enumerate((5, 3)):
        own = blocks[row, :, :length]
        f = squeeze(own[None], torch.ones(1, length), torch.tensor(FREQUENCIES["figure"][:4]), "mean")[0]
        s = torch.clamp(w1 @ f, min=0)
        gates = [1 / (1 + torch.exp(-(w2[n] @ s))) for n in range(3)]
        total = sum(torch.exp(gate) for gate in gates)
        fused = sum(torch.exp(gate) * own[n] for n, gate in enumerate(gates)) / total  # every token, Eq. 4
        torch.testing.assert_close(found[row], fused.mean(dim=0), rtol=1e-6, atol=1e-8)


def test_equal_gates_give_the_average_of_the_blocks():
    """O-30."""
    hidden, batch = states(), batch_of(5, 5)
    average = torch.stack(hidden[-3:]).mean(dim=(0, 2))
    for gate in ("softmax", "batch"):
        readout = make(gate=gate)
        readout.expand.weight.data.zero_()
        found = readout.read(hidden, *batch[:2])
        torch.testing.assert_close(F.normalize(found), F.normalize(average))
    torch.testing.assert_close(make(gate="softmax", reduction=1).fuse(
        torch.stack([h.mean(1) for h in hidden[-3:]], 1), torch.full((2, 3, 16), 0.3, dtype=torch.float64)
    ), average)  # fmt: skip


@pytest.mark.parametrize("changes", [{"blocks": 1}, {"fusion": "average"}], ids=["one block", "average"])
def test_one_branch_is_the_identity(changes):
    """O-31: whatever the gates, v = u; the code's gate is none, and declares that it depends on the batch."""
    hidden, batch = states(), batch_of(5, 3)
    readout = make(**changes)
    blocks = hidden[-1:] if "blocks" in changes else hidden[-3:]
    plain = torch.stack(blocks).mean(dim=0)
    expected = torch.stack([plain[0].mean(0), plain[1, :3].mean(0)])
    torch.testing.assert_close(readout.read(hidden, *batch[:2]), expected)
    (label,) = S2Sent.parse(BLOCK | changes, "readout").labels
    assert "identity" in label
    gated = make(**changes, gate="batch").read(hidden, *batch[:2])
    assert F.cosine_similarity(gated, expected).max() < 0.99999


@pytest.mark.parametrize(
    ("blocks", "low", "high"), [(3, 0.155362, 0.576117), (6, 0.068534, 0.352187), (12, 0.032361, 0.198150)]
)
def test_weights_lie_where_gates_between_0_and_1_can_put_them(blocks, low, high):
    """O-32: 1 / (1 + (N - 1) e) and e / (e + N - 1); they sum to 1 for every feature."""
    for gate, rest in ((0.0, 1.0), (1.0, 0.0)):
        gates = torch.full((1, blocks, 2), rest, dtype=torch.float64)
        gates[:, 0] = gate
        weights = gates.softmax(dim=1)
        assert weights[0, 0, 0].item() == pytest.approx(high if gate else low, abs=1e-6)
    torch.manual_seed(0)
    readout = make(depth=blocks, blocks=blocks)
    weights = readout.excite(torch.randn(3, 16, dtype=torch.float64) * 50).softmax(dim=1)
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(3, 16, dtype=torch.float64))
    assert low < weights.min()
    assert weights.max() < high


def test_the_gate_of_the_code_has_the_cosines_of_the_sum():
    """O-33; and those of Equation 4 are others."""
    hidden, batch = states(sentences=4), batch_of(5, 5, 5, 5)
    readout = make(gate="batch")
    found = readout.read(hidden, *batch[:2])
    blocks = torch.stack(hidden[-3:], dim=1)
    gates = readout.excite(squeeze(blocks, batch.mask_BT, readout.frequencies, "mean"))
    bare = (gates.exp() * blocks.mean(dim=2)).sum(dim=1)
    ours, theirs, equation4 = (
        F.normalize(v) @ F.normalize(v).T for v in (found, bare, make().read(hidden, *batch[:2]))
    )
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    assert (ours - equation4).abs().max() > 1e-6


def test_linear_fusion_is_one_gate_on_the_average_of_the_blocks():
    """S-10, appendix C: v = e * U."""
    hidden, batch = states(), batch_of(5, 3)
    readout = make(gate="linear")
    blocks = torch.stack(hidden[-3:], dim=1)
    gates = readout.excite(squeeze(blocks, batch.mask_BT, readout.frequencies, "mean"))
    assert gates.shape == (2, 1, 16)
    average = torch.stack([blocks[0].mean(dim=(0, 1)), blocks[1, :, :3].mean(dim=(0, 1))])
    torch.testing.assert_close(readout.read(hidden, *batch[:2]), gates[:, 0] * average)


def test_without_a_squeeze_each_token_makes_its_own_gate():
    """Figure 5, case 1."""
    readout = make(squeeze="none")
    hidden, batch = states(), batch_of(5, 3)
    w1, w2 = readout.reduce.weight, readout.expand.weight.view(3, 16, 4)
    tokens = []
    for place in range(3):
        own = [hidden[-3 + n][1, place] for n in range(3)]
        gates = torch.stack([torch.sigmoid(w2[n] @ torch.relu(w1 @ own[n])) for n in range(3)])
        tokens.append((gates.softmax(dim=0) * torch.stack(own)).sum(dim=0))
    torch.testing.assert_close(readout.read(hidden, *batch[:2])[1], torch.stack(tokens).mean(dim=0))


def test_which_blocks_are_the_last_n():
    """A4: the code leaves out the last one, and reaches the embedding output with all of them."""
    hidden, batch = states(), batch_of(5, 5)
    for last_block, used in ((True, hidden[2:]), (False, hidden[1:4])):
        readout = make(last_block=last_block)
        readout.expand.weight.data.zero_()
        average = torch.stack(used).mean(dim=(0, 2))
        torch.testing.assert_close(readout.read(hidden, *batch[:2]), average)
    readout = make(blocks=4, last_block=False)
    readout.expand.weight.data.zero_()
    torch.testing.assert_close(readout.read(hidden, *batch[:2]), torch.stack(hidden[:4]).mean(dim=(0, 2)))


def test_norm_over_all_branches_is_one_for_each_branch():
    """A2: BatchNorm1d of a branch, momentum 0.1, eps 1e-6; running statistics at test."""
    readout = make(batch_norm=True, bias=True).train()
    features = torch.randn(8, 16, dtype=torch.float64)
    found = readout.excite(features)
    low = torch.relu(readout.reduce(features))
    for n in range(3):
        own = torch.nn.BatchNorm1d(16, eps=1e-6, momentum=0.1).double().train()
        branch = slice(16 * n, 16 * (n + 1))
        excited = low @ readout.expand.weight[branch].T + readout.expand.bias[branch]
        torch.testing.assert_close(found[:, n], torch.sigmoid(own(excited)))
    readout.eval()
    alone = readout.excite(features[:1])
    torch.testing.assert_close(alone, readout.excite(features)[:1])


@pytest.mark.parametrize(
    ("blocks", "plain"), [(1, 98_304), (3, 196_608), (6, 344_064)], ids=["last1", "last3", "last6"]
)
def test_parameters_at_the_width_of_bert(blocks, plain):
    """O-34: without bias; and with bias and norm, as in the code, 203,584 for three blocks."""
    count = sum(p.numel() for p in make(width=768, depth=12, blocks=blocks, reduction=12).parameters())
    assert count == plain
    coded = make(width=768, depth=12, blocks=blocks, reduction=12, bias=True, batch_norm=True)
    official = 768 * 64 + 64 + blocks * (64 * 768 + 768 + 2 * 768)
    assert sum(p.numel() for p in coded.parameters()) == official
    assert (official == 203_584) == (blocks == 3)


def test_weights_start_as_in_the_code():
    """Normal with deviation .02, biases 0; gates of unit features then differ by less than a thousandth."""
    core = fresh(width=768, depth=12, reduction=12, bias=True)
    for layer, inputs in ((core.reduce, 768), (core.expand, 64)):
        assert layer.weight.shape[1] == inputs
        assert layer.weight.std().item() == pytest.approx(0.02, rel=0.02)
        assert abs(layer.weight.mean().item()) < 0.0003
        assert not layer.bias.any()
    features = torch.randn(32, 768, generator=torch.Generator().manual_seed(1)).double() * 0.05
    assert core.excite(features).std().item() < 0.001  # PyTorch's own weights: .013, mostly of biases


@pytest.mark.parametrize(("pooling", "head"), [("avg", False), ("cls", True), ("mask", True)])
def test_cls_and_mask_are_followed_by_the_head(pooling, head):
    """The code's cl_init and PromptBERT's."""
    assert S2Sent.parse(BLOCK | {"pooling": pooling}, "readout").has_head == head


@pytest.mark.parametrize("changes", [{"frequencies": 1, "reduction": 13}, {"frequencies": 8}])
def test_a_width_that_cannot_be_divided_is_refused(changes):
    make(width=12, frequencies=8, squeeze="gap")  # one part
    with pytest.raises(ValueError, match="one does not divide the width 12"):
        make(width=12, **changes)


def test_mask_tokens_can_be_read_in_place_of_the_average():
    """A15."""
    readout = make(pooling="mask")
    readout.mask_id.fill_(9)
    readout.mask_counts[1] = 1
    batch = batch_of(5, 3)
    batch.ids_BT[0, 4] = batch.ids_BT[1, 1] = 9
    hidden = states()
    readout.expand.weight.data.zero_()
    average = torch.stack(hidden[-3:]).mean(dim=0)
    torch.testing.assert_close(readout.read(hidden, *batch[:2]), torch.stack([average[0, 4], average[1, 1]]))
