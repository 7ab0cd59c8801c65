import pytest

from tests.tiny import training as settings
from workflow_scripts.config import ConfigError


def rates(steps, **changes):
    return [settings(**{"learning_rate": 0.8} | changes).rate(step, steps) for step in range(1, steps + 1)]


def test_linear_starts_at_the_peak_and_would_reach_zero_after_the_last_step():
    """As transformers has it, whose first step has the full rate where there is no warm-up."""
    assert rates(4) == pytest.approx([0.8, 0.6, 0.4, 0.2])


def test_a_schedule_that_is_cut_short_is_the_beginning_of_the_whole():
    """LLM2Vec stops at step 1,000 of three epochs, 23,439 steps."""
    whole = rates(23_439)[:1000]
    assert rates(1000, rate_at_end=1 - 1000 / 23_439) == pytest.approx(whole)
    assert whole[-1] == pytest.approx(0.8 * 0.957, abs=1e-3)


def test_warm_up_rises_from_zero_to_the_peak():
    assert rates(6, warmup_steps=2) == pytest.approx([0.4, 0.8, 0.8, 0.6, 0.4, 0.2])
    assert rates(4, warmup_steps=2, schedule="constant") == pytest.approx([0.4, 0.8, 0.8, 0.8])


def test_a_schedule_begins_again_with_its_warm_up():
    assert rates(6, restart_every=4) == pytest.approx([0.8, 0.6, 0.4, 0.2, 0.8, 0.6])
    assert rates(5, restart_every=3, warmup_steps=2) == pytest.approx([0.4, 0.8, 0.8, 0.4, 0.8])


def test_steps_count_the_last_batch_if_it_is_kept():
    """The official script takes 539 steps an epoch over NLI's 275,601 triples, LLM2Vec's 23,439 in three of a million."""

    def kept(rows, **changes):
        return settings(max_steps=None, last_batch="keep", **changes).steps(rows)

    assert kept(275_601, epochs=1, batch_size=512) == 539
    assert kept(275_601, epochs=3, batch_size=512) == 1617
    assert kept(1_000_000, epochs=3, batch_size=128) == 23_439
    assert kept(1_000_000, epochs=1, batch_size=64) == 15_625
    assert [kept(rows, epochs=1) for rows in range(4, 14)] == [
        1,
        1,
        2,
        2,
        2,
        2,
        3,
        3,
        3,
        3,
    ]  # one left is no batch
    assert settings(max_steps=10, last_batch="keep").steps(11) == 10


def test_steps_leave_out_the_last_batch_if_it_is_dropped():
    assert settings(epochs=1, max_steps=None, batch_size=512).steps(275_601) == 538
    assert settings(epochs=3, max_steps=None).steps(11) == 6
    assert settings(epochs=1, max_steps=None, batch_size=64).steps(1_000_000) == 15_625
    assert settings(max_steps=10).steps(5) == 10


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"epochs": 1}, r"training\.epochs: 1 with max_steps 10"),
        ({"max_steps": None}, r"training\.epochs: None with max_steps None"),
        ({"batch_size": 1}, r"training\.batch_size"),  # a sentence alone has no negative
        ({"learning_rate": 0.0}, r"training\.learning_rate"),
        ({"schedule": "cosine"}, r"training\.schedule"),
        ({"warmup": 3}, r"training\.warmup"),
        ({"max_tokens": 2}, r"training\.max_tokens"),
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(changes, complaint):
    with pytest.raises(ConfigError, match=complaint):
        settings(**changes)
