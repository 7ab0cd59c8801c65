import numpy as np
import pyarrow as pa
import pytest

from tests.numbers.evaluation.scored import evaluate
from workflow_scripts.columns.corpora import PAIRS
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


def scores_of(tables, encode):
    return evaluate(sts, tables, encode, sts.Config(datasets=list(tables), max_tokens=64))


def values(scores, metric="spearman"):
    return {score.aggregation: pytest.approx(score.value) for score in scores if score.metric == metric}


@pytest.fixture
def task():
    """Random scored pairs of two subsets, with their sentences' vectors."""
    random = np.random.default_rng(3)
    rows = [
        {
            "subset": "AB"[number % 2],
            "sentence1": f"one {number}",
            "sentence2": f"two {number}",
            "score": score,
        }
        for number, score in enumerate(random.uniform(0, 5, 40).round(1))
    ]
    table = pa.Table.from_pylist(rows, schema=PAIRS)
    vectors = {
        text: random.normal(size=6) for side in ("sentence1", "sentence2") for text in table[side].to_pylist()
    }
    return table, vectors


def encoder(vectors, transform=lambda matrix: matrix):
    return lambda sentences: transform(np.array([vectors[sentence] for sentence in sentences])).astype(
        np.float32
    )


def test_the_three_summaries_of_two_subsets_differ_as_they_should():
    """O-07: each subset alone is perfect; together their offsets turn the order around. wmean weighs by pairs."""
    scores = correlations(A=([1, 2], [1, 2]), B=([0, 0.5], [10, 11]))
    assert values(scores) == {"all": -0.6, "wmean": 1.0, "mean": 1.0, "subset:A": 1.0, "subset:B": 1.0}
    scores = correlations(A=([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]), B=([1, 2], [2, 1]))
    assert values(scores).items() >= {"wmean": (6 * 1 + 2 * -1) / 8, "mean": 0}.items()
    assert [score.n for score in scores if score.metric == "spearman"] == [8, 8, 8, 6, 2]


def test_a_task_without_subsets_has_equal_summaries_and_one_that_hides_them_has_only_all():
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
def test_lengths_scales_and_rotations_of_embeddings_do_not_matter(task, transform):
    """O-11."""
    table, vectors = task
    plain = values(scores_of({"toy": table}, encoder(vectors)))
    assert plain == values(scores_of({"toy": table}, encoder(vectors, transform)))


def test_constant_judgements_or_cosines_score_0_and_never_nan():
    """O-11."""
    constant, rising = np.array([3.0, 3.0, 3.0]), np.array([1.0, 2.0, 3.0])
    for found in (pearson, spearman):
        assert found(constant, rising) == found(rising, constant) == 0
    assert {score.value for score in correlations(A=([1, 2, 3], [0.5, 0.5, 0.5]))} == {0.0}
    scores = correlations(A=([1, 2, 3], [1, 2, 3]), B=([3, 3, 3], [1, 2, 3]))
    assert {score.value for score in scores if score.aggregation == "subset:B"} == {0.0}


def test_a_task_that_is_judged_alike_throughout_is_refused():
    """A correlation of 0 would look like a measurement."""
    with pytest.raises(DataError, match="toy: all 3 judgements are 3, and nothing correlates with them"):
        correlations(A=([3, 3, 3], [1, 2, 3]))


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (lambda count: np.where(np.arange(count)[:, None] == 1, np.nan, np.ones((count, 6))), "1 embeddings"),
        (lambda count: np.full((count, 6), np.inf), "80 embeddings are not finite"),
        (lambda count: np.ones((count, 6)), "all 80 sentences have the same embedding"),
    ],
    ids=["nan", "inf", "equal"],
)
def test_an_encoder_that_is_broken_has_no_scores(task, broken, complaint):
    with pytest.raises(DataError, match=complaint):
        scores_of({"toy": task[0]}, lambda sentences: broken(len(sentences)).astype(np.float32))


