import math

import pytest
import torch

from workflow_scripts.losses.reduction import Threshold, deviation, reduce
from workflow_scripts.settings.methods import ThresholdConfig


def threshold(c, surrogate="straight_through"):
    travel = 0.0 if surrogate == "frozen" else 0.75
    block = {"surrogate": surrogate, "start": None, "temperature": 0.05, "lr_budget": travel}
    return Threshold(ThresholdConfig.parse(block, "threshold"), c)


def rows(count=6, width=5, seed=0):
    return torch.randn(count, width, generator=torch.Generator().manual_seed(seed))


def test_two_sentences_worked_by_hand():
    """O-64: over both rows, deviations are (1, 0); c = .5 and hbar = (5, 1) leave ((0, 0), (2, 0))."""
    rows_BD = torch.tensor([[0.0, 1.0], [2.0, 1.0]])
    assert deviation(rows_BD).tolist() == [1.0, 0.0]
    member_D = threshold(0.5)(deviation(rows_BD))
    assert member_D.tolist() == [0.0, 1.0]
    reduced = reduce(rows_BD.unsqueeze(0), torch.tensor([5.0, 1.0]), member_D)
    assert reduced.tolist() == [[[0.0, 0.0], [2.0, 0.0]]]


def test_reduction_in_its_three_special_cases():
    """O-63: c above all deviations; nothing redundant; each vector's own value taken away."""
    rows_BD, redundant_D, spread_D = rows(), rows(1, seed=1)[0], deviation(rows())
    everywhere_D = threshold(float(spread_D.max()) + 0.1)(spread_D)
    torch.testing.assert_close(reduce(rows_BD[None], redundant_D, everywhere_D)[0], rows_BD - redundant_D)
    assert torch.equal(reduce(rows_BD[None], torch.zeros(5), everywhere_D)[0], rows_BD)
    c = float(spread_D.median())
    member_D = threshold(c)(spread_D)
    assert 0 < member_D.sum() < 5
    assert torch.equal(reduce(rows_BD[None], None, member_D)[0], torch.where(spread_D < c, 0.0, rows_BD))


def test_a_shared_translation_leaves_the_reduced_unchanged():
    """O-65."""
    rows_BD, redundant_D, shift_D = rows().double(), rows(1, seed=1)[0].double(), rows(1, seed=2)[0].double()
    c = float(deviation(rows_BD).median())
    here, there = (threshold(c)(deviation(moved)) for moved in (rows_BD, rows_BD + shift_D))
    assert torch.equal(here, there)
    before = reduce(rows_BD[None], redundant_D, here)[0]
    after = reduce((rows_BD + shift_D)[None], redundant_D + shift_D, there)[0]
    inside = here.bool()
    assert inside.any()
    torch.testing.assert_close(before[:, inside], after[:, inside], rtol=0, atol=1e-12)


def gradient_of_c(surrogate):
    rows_BD = rows()
    module = threshold(float(deviation(rows_BD).median()) + 0.01, surrogate)
    loss = reduce(rows_BD[None], rows(1, seed=1)[0], module(deviation(rows_BD))).square().sum()
    if loss.requires_grad:
        loss.backward()
    return module.c.grad


def test_the_step_gives_no_gradient_and_surrogates_do():
    """O-66."""
    assert gradient_of_c("frozen") is None
    assert gradient_of_c("straight_through").item() != 0
    assert gradient_of_c("soft").item() != 0


def test_the_straight_through_gradient_is_that_of_the_sigmoid():
    """O-66: d sigmoid((c - sigma) / T) / dc over its largest, weighted by what membership does to the loss."""
    deviation_D, weight_D = torch.tensor([0.1, 0.3, 0.28]).double(), torch.tensor([1.0, -2.0, 0.5]).double()
    module = threshold(0.29).double()
    (module(deviation_D) * weight_D).sum().backward()
    low_D, high_D = (torch.sigmoid((0.29 + step - deviation_D) / 0.05) for step in (-1e-6, 1e-6))
    slope_D = (high_D - low_D) / 2e-6
    expected = (slope_D * weight_D).sum() / slope_D.max()
    assert module.c.grad.item() == pytest.approx(expected.item(), rel=1e-4)


@pytest.mark.parametrize("c", [1.0, 0.7, 0.0])
def test_a_threshold_far_from_all_deviations_has_a_gradient(c):
    """By hand: far above, slopes are exp(-(c - sigma) / T) / T, and those of .05 and .10 have the ratio 1 / e; O-66."""
    module = threshold(c)
    member_D = module(torch.tensor([0.05, 0.10]))
    (member_D * torch.tensor([1.0, -1.0])).sum().backward()
    assert member_D.tolist() == [float(c > 0)] * 2
    near, far = (
        (math.exp(-1), 1.0) if c else (1.0, math.exp(-1) * ((1 + math.exp(-1)) / (1 + math.exp(-2))) ** 2)
    )
    assert module.c.grad.item() == pytest.approx(near - far, rel=1e-4)


def test_the_encoder_learns_through_deviations_of_the_soft_gate():
    """The encoder learns only through the deviations of the soft gate."""
    for surrogate, learns in (("straight_through", False), ("soft", True)):
        rows_BD = rows().requires_grad_()
        threshold(0.5, surrogate)(deviation(rows_BD)).sum().backward()
        assert (rows_BD.grad is not None and bool(rows_BD.grad.any())) == learns


def test_a_threshold_below_zero_goes_back_to_it():
    module = threshold(-0.3)
    module.clamp()
    assert module.c.item() == 0.0
    assert module.c.requires_grad
