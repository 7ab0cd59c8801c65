import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_scripts.losses.infonce import cos_sim, infonce, infonce_with_negatives


def triples(rows=5, width=7, seed=0):
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(3, rows, width, generator=draw, dtype=torch.float64)


def views(rows=5, width=7, seed=0):
    return triples(rows, width, seed)[:2]


def test_all_similarities_equal_gives_the_logarithm_of_the_batch():
    """O-17: ln 64 = 4.1588831."""
    same = torch.ones(64, 8, dtype=torch.float64)
    assert infonce(same, same, 0.05).item() == pytest.approx(4.1588831, abs=1e-7)


def test_perfect_positives_and_orthogonal_negatives():
    """O-18: ln(1 + 63 exp(-20)) = 1.298527e-7."""
    axes = torch.eye(64, dtype=torch.float64)
    expected = math.log1p(63 * math.exp(-20))
    assert expected == pytest.approx(1.298527e-7, rel=1e-6)
    assert infonce(axes, 3 * axes, 0.05).item() == pytest.approx(expected, rel=1e-8)


def test_the_equation_written_out():
    first, second = views()
    total = 0.0
    for i in range(5):
        cosines = [
            sum(a * b for a, b in zip(first[i].tolist(), second[j].tolist(), strict=True))
            / (math.hypot(*first[i].tolist()) * math.hypot(*second[j].tolist()))
            for j in range(5)
        ]
        weights = [math.exp(cosine / 0.3) for cosine in cosines]
        total -= math.log(weights[i] / sum(weights))
    assert infonce(first, second, 0.3).item() == pytest.approx(total / 5, rel=1e-12)


@settings(max_examples=25)
@given(order=st.permutations(range(6)), seed=st.integers(0, 1000))
def test_the_order_of_the_batch_does_not_matter(order, seed):
    """O-20."""
    first, second = views(rows=6, seed=seed)
    shuffled = infonce(first[order], second[order], 0.05)
    torch.testing.assert_close(shuffled, infonce(first, second, 0.05), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("temperature", [0.01, 0.05, 1.0])
@pytest.mark.parametrize("negatives", [False, True])
def test_it_equals_multiple_negatives_ranking_loss(temperature, negatives):
    """Sentence-transformers as an independent implementation, scale 1 / temperature."""
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    ours, theirs = (triples(rows=8, seed=3)[: 2 + negatives].requires_grad_() for _ in range(2))
    loss = infonce_with_negatives(*ours, temperature, 0.0) if negatives else infonce(*ours, temperature)
    peer = MultipleNegativesRankingLoss(model=None, scale=1 / temperature)
    expected = peer.compute_loss_from_embeddings([*theirs], labels=None)
    torch.testing.assert_close(loss, expected, rtol=1e-10, atol=1e-12)
    loss.backward()
    expected.backward()
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-8, atol=1e-10)


def test_cosines_are_never_products_in_bfloat16():
    """A temperature of 0.05 multiplies their error by 20."""
    first, second = views(rows=8, width=64).float()
    exact = cos_sim(first, second)
    short = cos_sim(first.bfloat16(), second.bfloat16())
    with torch.autocast("cpu", torch.bfloat16):
        within = cos_sim(first, second)
    assert within.dtype == short.dtype == torch.float32
    assert torch.equal(within, exact)
    assert torch.equal(short, cos_sim(first.bfloat16().float(), second.bfloat16().float()))


# With hard negatives


@pytest.mark.parametrize(
    ("weight", "expected"), [(0.0, math.log(128)), (1.0, math.log(127 + math.e))], ids=["plain", "weighted"]
)
def test_equal_similarities_give_the_log_of_the_weights(weight, expected):
    """O-19, batch of 64: ln 128, and ln(127 + e) where a row's own hard negative weighs e."""
    same = torch.ones(64, 8, dtype=torch.float64)
    loss = infonce_with_negatives(same, same, same, 0.05, weight)
    assert loss.item() == pytest.approx(expected, rel=1e-12)


def test_triples_written_out_by_hand():
    """Two triples in the plane at temperature 1/2: cosines 1, 0 to positives, and 0, 1 or -1 to negatives."""
    anchors = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    negatives = torch.tensor([[0.0, 3.0], [0.0, -1.0]])
    loss = infonce_with_negatives(anchors, anchors, negatives, 0.5, 1.0)
    first = math.log((math.exp(2) + 1 + math.exp(0 + 1) + 1) / math.exp(2))
    second = math.log((math.exp(2) + 1 + math.exp(2) + math.exp(-2 + 1)) / math.exp(2))
    assert loss.item() == pytest.approx((first + second) / 2, rel=1e-6)
