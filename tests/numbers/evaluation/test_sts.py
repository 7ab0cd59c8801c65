import numpy as np
import pyarrow as pa
import pytest

from tests.support.scored_tasks import evaluate
from workflow_scripts.columns import PAIRS
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation import sts
from workflow_scripts.evaluation.correlation import pearson, spearman


def correlations(**subsets):
    """Scores of judgements and cosines, subset by subset."""
    parts = [
        (name, *map(float, pair)) for name, sides in subsets.items() for pair in zip(*sides, strict=True)
    ]
    subset, gold, cosine = map(np.array, zip(*parts, strict=True))
    return sts.Judged("toy", subset.astype(object), gold).scores(cosine)


def values(scores, metric="spearman"):
    return {score.aggregation: pytest.approx(score.value) for score in scores if score.metric == metric}


SENTENCES = [f"sentence {number}" for number in range(80)]
VECTORS_ND = np.random.default_rng(3).normal(size=(80, 6))
PAIRS_TABLE = pa.table(
    [["A", "B"] * 20, SENTENCES[:40], SENTENCES[40:], np.random.default_rng(4).uniform(0, 5, 40)],
    schema=PAIRS,
)


def scores_of(vectors_ND):
    """Scores of the pairs from the vectors of their sentences."""
    config = sts.Config(datasets=["toy"], max_tokens=64)
    return evaluate(sts, {"toy": PAIRS_TABLE}, lambda _: vectors_ND.astype(np.float32), config)


def test_the_three_summaries_of_two_subsets_differ():
    """O-07: each subset alone is perfect; together their offsets turn the order around. wmean weighs by pairs."""
    scores = correlations(A=([1, 2], [1, 2]), B=([0, 0.5], [10, 11]))
    assert values(scores) == {"all": -0.6, "wmean": 1.0, "mean": 1.0, "subset:A": 1.0, "subset:B": 1.0}
    scores = correlations(A=([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]), B=([1, 2], [2, 1]))
    assert values(scores).items() >= {"wmean": (6 * 1 + 2 * -1) / 8, "mean": 0}.items()
    assert [score.n for score in scores if score.metric == "spearman"] == [8, 8, 8, 6, 2]


def test_a_task_without_subsets_has_equal_summaries():
    """A task without subsets has equal summaries and one that hides them has only all."""
    plain = correlations(**{"": ([1, 2, 3], [1, 3, 2])})
    assert values(plain) == {"all": 0.5, "wmean": 0.5, "mean": 0.5}
    hidden = sts.Judged("toy", np.array([None] * 3), np.array([1.0, 2, 3]))
    assert values(hidden.scores(np.array([1.0, 3, 2]))) == {"all": 0.5}


@pytest.mark.parametrize(
    "transform",
    [
        lambda matrix: matrix / np.linalg.norm(matrix, axis=1, keepdims=True),
        lambda matrix: 7 * matrix,
        lambda matrix: matrix @ np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0],
    ],
    ids=["unit length", "scale", "rotation"],
)
def test_lengths_scales_and_rotations_do_not_matter(transform):
    """O-11."""
    assert values(scores_of(VECTORS_ND)) == values(scores_of(transform(VECTORS_ND)))


def test_constant_judgements_or_cosines_score_0_and_never_nan():
    """O-11."""
    constant, rising = np.array([3.0, 3.0, 3.0]), np.array([1.0, 2.0, 3.0])
    for found in (pearson, spearman):
        assert found(constant, rising) == found(rising, constant) == 0
    assert {score.value for score in correlations(A=([1, 2, 3], [0.5, 0.5, 0.5]))} == {0.0}


@pytest.mark.parametrize(
    "without", [([3, 3, 3], [1, 2, 3]), ([3], [1])], ids=["equal judgements", "one pair"]
)
def test_a_subset_without_a_correlation_counts_in_no_mean(without):
    """A subset without a correlation counts in no mean and the means say so."""
    alone = correlations(A=([1, 2, 3], [1, 3, 2]))
    scores = correlations(A=([1, 2, 3], [1, 3, 2]), B=without)
    assert values(scores) == {"wmean": 0.5, "mean": 0.5, "subset:A": 0.5} | {"all": values(scores)["all"]}
    said = {score.note for score in scores if score.aggregation in ("mean", "wmean")}
    assert said == {"without 1 of 2 subsets, such as B: one pair or equal judgements, and no correlation"}
    assert {score.note for score in (*alone, scores[0])} == {None}
    apart = correlations(A=([1], [2]), B=([2], [1]))
    assert {score.aggregation: score.value for score in apart if score.aggregation != "all"} == {
        "mean": None,
        "wmean": None,
    }


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (np.where(np.arange(80)[:, None] == 1, np.nan, VECTORS_ND), "1 embeddings are not finite"),
        (np.full((80, 6), np.inf), "80 embeddings are not finite"),
        (np.zeros((80, 6)), "all 80 sentences have the same embedding"),
        (np.full((80, 6), 0.1, np.float32), "all 80 sentences have the same embedding"),
        (0.1 + 1e-7 * VECTORS_ND, "all 80 sentences have the same embedding"),
    ],
    ids=["nan", "inf", "zero", "equal", "rounded"],
)
def test_an_encoder_that_is_broken_has_no_scores(broken, complaint):
    with pytest.raises(DataError, match=complaint):
        scores_of(broken)
