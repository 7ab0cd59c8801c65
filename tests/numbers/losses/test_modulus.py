import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_scripts.losses.infonce import cos_sim
from workflow_scripts.losses.modulus import contrast_views, modulus_constraint, modulus_distance


def pair(k, t):
    """Two vectors of lengths 1 and k whose cosine is t."""
    left, right = [[1.0, 0.0]], [[t, math.sqrt(1 - t * t)]]
    return torch.tensor(left, dtype=torch.float64), k * torch.tensor(right, dtype=torch.float64)


WORKED = [
    (1, 1, 0), (1, 0, 0.7071068), (1, -1, 1), (2, 1, 1 / 3), (3, 1, 0.5), (10, 1, 0.8181818), (2, 0, 0.7453560),
    (1, 0.5, 0.5), (2, 0.5, 0.5773503), (1, 0.9, 0.2236068),
]  # fmt: skip


@pytest.mark.parametrize(("k", "t", "expected"), WORKED)
def test_the_surface_at_points_worked_by_hand(k, t, expected):
    """O-40."""
    assert modulus_distance(*pair(k, t)).item() == pytest.approx(expected, abs=1e-7)
    assert math.sqrt(max(0, 1 + k * k - 2 * k * t)) / (1 + k) == pytest.approx(expected, abs=1e-7)


@settings(max_examples=50)
@given(k=st.floats(0.01, 100), t=st.floats(-1, 1), scale=st.floats(0.01, 100))
def test_identities_of_the_surface(k, t, scale):
    """O-41."""
    left, right = pair(k, t)
    value = modulus_distance(left, right).item()
    assert 0 <= value <= 1 + 1e-12
    assert modulus_distance(*pair(1 / k, t)).item() == pytest.approx(value, abs=1e-9)
    assert modulus_distance(scale * left, scale * right).item() == pytest.approx(value, abs=1e-9)
    assert modulus_distance(*pair(k, -1)).item() == pytest.approx(1)
    assert modulus_distance(*pair(k, 1)).item() == pytest.approx(abs(1 - k) / (1 + k), abs=1e-9)
    assert modulus_distance(*pair(1, t)).item() == pytest.approx(math.sqrt((1 - t) / 2), abs=1e-7)


def test_vectors_worked_by_hand():
    """O-42."""
    left = torch.tensor([[3.0, 4.0], [1.0, 0.0], [2.0, -5.0]])
    right = torch.tensor([[6.0, 8.0], [0.0, 1.0], [-2.0, 5.0]])
    torch.testing.assert_close(modulus_distance(left, right), torch.tensor([1 / 3, 0.7071068, 1.0]))


CONSTRAINED = [  # cosine of the last states; k and cosine of the poolers' outputs; weight
    (0.9, 1, 0.9, 1.0, 0.0235593),  # O-43
    (0.9, 1, 0.9, 0.5, 0.0117797),
    # -ln 1e-4; the code's factor is infinite at 0.
    *((cosine, 1, -1, 1.0, 9.2103404) for cosine in (-0.5, 0.0, 1e-5)),
    *((cosine, 3, 0.2, 0.5, -math.log(cosine) * math.sqrt(8.8) / 8) for cosine in (2e-4, 0.1)),
    (1.0, 3, 0.2, 1.0, 0.0),  # O-44: whatever the poolers say
]


@pytest.mark.parametrize(("cosine", "k", "t", "weight", "expected"), CONSTRAINED)
def test_the_constraint_at_points_worked_by_hand(cosine, k, t, weight, expected):
    """Minus the logarithm of the cosine, which is at least 1e-4, times the distance of the poolers' outputs."""
    value = modulus_constraint(*pair(2, cosine), *pair(k, t), weight=weight).item()
    assert value == pytest.approx(expected, rel=1e-7, abs=1e-7)


def test_equal_similarities_give_the_log_of_all_other_views():
    """O-45: B = 64, ln 127 = 4.8441871."""
    same = torch.ones(128, 8).double()
    assert contrast_views(same, same, 0.05).item() == pytest.approx(4.8441871, abs=1e-7)


def test_orthogonal_perfect_pairs():
    """O-45: four sentences, ln(1 + 6 exp(-20)) = 1.2366922e-8."""
    views = torch.eye(4).double().repeat(2, 1)
    assert contrast_views(views, views, 0.05).item() == pytest.approx(1.2366922e-8, rel=1e-6)


def test_the_contrast_of_views_written_out():
    """Eqs. 11 and 12 with 2B - 1 candidates, row by row: the other way round (O-46), another loss."""
    rows, candidates = torch.randn(6, 5).double(), torch.randn(6, 5).double()
    cosines = cos_sim(rows, candidates).tolist()
    total = 0.0
    for i in range(6):
        weights = {j: math.exp(cosines[i][j] / 0.3) for j in range(6) if j != i}
        total -= math.log(weights[(i + 3) % 6] / sum(weights.values()))
    assert contrast_views(rows, candidates, 0.3).item() == pytest.approx(total / 6, rel=1e-12)
    assert contrast_views(candidates, rows, 0.3).item() != pytest.approx(total / 6, rel=1e-6)
