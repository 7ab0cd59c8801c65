import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_scripts.errors import TrainingError
from workflow_scripts.training.sampler import Sampler


@given(
    rows=st.integers(2, 60),
    batch_size=st.integers(1, 20),
    seed=st.integers(0, 2**32),
    epoch=st.integers(0, 4),
)
def test_no_row_comes_twice_in_an_epoch_and_none_is_made_up(rows, batch_size, seed, epoch):
    batch_size = min(rows, batch_size)
    per_epoch = rows // batch_size
    sampler = Sampler(rows, batch_size, seed)
    steps = range(epoch * per_epoch + 1, (epoch + 1) * per_epoch + 1)
    drawn = np.concatenate([sampler.rows_of(step) for step in steps])
    assert len(drawn) == per_epoch * batch_size
    assert len(set(drawn.tolist())) == len(drawn)
    assert set(drawn.tolist()) <= set(range(rows))


def test_a_batch_is_a_function_of_seed_and_step_alone():
    asked_in_order = [Sampler(50, 8, seed=3).rows_of(step).tolist() for step in range(1, 30)]
    sampler = Sampler(50, 8, seed=3)
    backwards = [sampler.rows_of(step).tolist() for step in reversed(range(1, 30))]
    assert asked_in_order == backwards[::-1]


def test_epochs_and_seeds_have_orders_of_their_own():
    orders = {
        tuple(Sampler(64, 64, seed).rows_of(step).tolist()) for seed in range(4) for step in range(1, 5)
    }
    assert len(orders) == 16


def test_every_row_comes_first_about_as_often():
    """A shuffle, not a rotation: of 6,000 seeds each row comes first in 1,000, within five deviations."""
    counts = np.bincount([Sampler(6, 2, seed).rows_of(1)[0] for seed in range(6000)], minlength=6)
    assert np.abs(counts - 1000).max() < 5 * np.sqrt(6000 * (1 / 6) * (5 / 6))


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
