import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.toys import training as settings
from workflow_scripts.errors import ConfigError, TrainingError
from workflow_scripts.training import ranks
from workflow_scripts.training.sampler import Sampler


@given(
    rows=st.integers(2, 60),
    batch_size=st.integers(2, 20),
    seed=st.integers(0, 2**32),
    epoch=st.integers(0, 4),
    last_batch=st.sampled_from(["drop", "keep"]),
)
def test_every_row_comes_once_in_an_epoch(rows, batch_size, seed, epoch, last_batch):
    """Every row once, except dropped ones, and a row that would be a batch by itself."""
    batch_size = min(rows, batch_size)
    one = settings(epochs=1, max_steps=None, batch_size=batch_size, last_batch=last_batch).steps(rows)
    sampler = Sampler(rows, batch_size, seed, last_batch)
    drawn = [sampler.rows_of(step) for step in range(epoch * one + 1, (epoch + 1) * one + 1)]
    assert [len(batch) for batch in drawn[:-1]] == [batch_size] * (one - 1)
    left = rows % batch_size
    seen = np.concatenate(drawn).tolist()
    assert len(seen) == len(set(seen)) == rows - (left if last_batch == "drop" or left == 1 else 0)
    assert set(seen) <= set(range(rows))


def test_the_last_batch_is_what_a_dropped_one_leaves_out():
    """Eleven rows by four, by hand: 4, 4 and 3 an epoch, in the order that dropping has too."""
    kept, dropped = Sampler(11, 4, 7, "keep"), Sampler(11, 4, 7)
    assert [len(kept.rows_of(step)) for step in range(1, 8)] == [4, 4, 3, 4, 4, 3, 4]
    for ours, theirs in ((1, 1), (2, 2), (4, 3), (5, 4)):
        assert kept.rows_of(ours).tolist() == dropped.rows_of(theirs).tolist()
    left = set(range(11)) - {row for step in (1, 2) for row in dropped.rows_of(step).tolist()}
    assert set(kept.rows_of(3).tolist()) == left


@pytest.mark.parametrize(("rows", "sizes"), [(9, [4, 4]), (10, [4, 4, 2]), (11, None)])
def test_a_last_batch_is_divided_among_processes_or_refused(monkeypatch, rows, sizes):
    """Two processes: a single row is left out, two are one each, three cannot be shared."""
    shares = []
    for rank in (0, 1):
        monkeypatch.setattr(ranks, "world", lambda: 2)
        monkeypatch.setattr(ranks, "rank", lambda rank=rank: rank)
        if sizes is None:
            with pytest.raises(ConfigError, match="last_batch: keep leaves 3 of 11 rows for 2 processes"):
                Sampler(rows, 4, 7, "keep")
            continue
        sampler = Sampler(rows, 4, 7, "keep")
        shares.append([sampler.rows_of(step).tolist() for step in range(1, len(sizes) + 1)])
    if sizes is not None:
        ours, theirs = shares
        assert [[len(part) for part in share] for share in shares] == [[size // 2 for size in sizes]] * 2
        assert len({row for part in (*ours, *theirs) for row in part}) == sum(sizes)


def test_the_first_batches_are_frozen():
    """Another order would change every result: old runs could not be repeated."""
    sampler = Sampler(10, 4, seed=7)
    frozen = [[8, 0, 7, 1], [3, 6, 2, 4], [9, 0, 8, 6]]
    assert [sampler.rows_of(step).tolist() for step in (1, 2, 3)] == frozen


def test_a_corpus_smaller_than_a_batch_is_an_error_that_says_so():
    assert Sampler(4, 4, 0).rows_of(1).size == 4
    with pytest.raises(TrainingError, match=r"3 rows, fewer than a batch of 4"):
        Sampler(3, 4, 0)
    with pytest.raises(TrainingError, match=r"0 rows"):
        Sampler(0, 4, 0)
