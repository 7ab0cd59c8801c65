import pytest
import torch
from transformers import get_scheduler

from tests.support.toys import training as settings


def rates(steps, **changes):
    return [settings(**{"learning_rate": 0.8} | changes).lr(step, steps) for step in range(1, steps + 1)]


def test_linear_starts_at_the_peak_and_falls_towards_zero():
    """The schedule of transformers, whose first step has the full rate without a warm-up."""
    assert rates(4) == pytest.approx([0.8, 0.6, 0.4, 0.2])


def test_a_schedule_cut_short_is_the_beginning_of_the_whole():
    """LLM2Vec stops at step 1,000 of three epochs, 23,439 steps."""
    whole = rates(23_439)[:1000]
    assert rates(1000, min_lr_ratio=1 - 1000 / 23_439) == pytest.approx(whole)
    assert whole[-1] == pytest.approx(0.8 * 0.957, abs=1e-3)


def test_warm_up_rises_from_zero_to_the_peak():
    assert rates(6, warmup_steps=2) == pytest.approx([0.4, 0.8, 0.8, 0.6, 0.4, 0.2])
    assert rates(4, warmup_steps=2, schedule="constant") == pytest.approx([0.4, 0.8, 0.8, 0.8])


@pytest.mark.parametrize("warmup", [0, 1, 3, 9])
@pytest.mark.parametrize(("ours", "theirs"), [("linear", "linear"), ("constant", "constant_with_warmup")])
def test_a_warm_up_is_one_step_ahead_of_transformers(ours, theirs, warmup):
    """Its first step has the rate 0 there; after the warm-up the rates are the same."""
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.8)
    scheduler = get_scheduler(theirs, optimiser, num_warmup_steps=warmup, num_training_steps=12)
    official = []
    for _ in range(12):
        official.append(scheduler.get_last_lr()[0])
        optimiser.step()
        scheduler.step()
    found = rates(12, warmup_steps=warmup, schedule=ours)
    assert found[:warmup] == pytest.approx(official[1 : warmup + 1])
    assert found[warmup:] == pytest.approx(official[warmup:])
    assert warmup == 0 or official[0] == 0 < found[0]


def test_a_schedule_begins_again_with_its_warm_up():
    assert rates(6, restart_every=4) == pytest.approx([0.8, 0.6, 0.4, 0.2, 0.8, 0.6])
    assert rates(5, restart_every=3, warmup_steps=2) == pytest.approx([0.4, 0.8, 0.8, 0.4, 0.8])


KEPT = {4: 1, 5: 1, 6: 2, 7: 2, 8: 2, 9: 2, 10: 3, 11: 3, 12: 3, 13: 3}
"""Rows in batches of four; a single remaining row is not a batch."""


@pytest.mark.parametrize(
    ("rows", "last_batch", "changes", "steps"),
    [
        (275_601, "keep", {"epochs": 1, "batch_size": 512}, 539),  # the official script's, over NLI's triples
        (275_601, "keep", {"epochs": 3, "batch_size": 512}, 1617),
        (1_000_000, "keep", {"epochs": 3, "batch_size": 128}, 23_439),  # LLM2Vec's
        (1_000_000, "keep", {"epochs": 1, "batch_size": 64}, 15_625),
        *((rows, "keep", {"epochs": 1}, steps) for rows, steps in KEPT.items()),
        (11, "keep", {"max_steps": 10}, 10),
        (275_601, "drop", {"epochs": 1, "batch_size": 512}, 538),
        (11, "drop", {"epochs": 3}, 6),
        (1_000_000, "drop", {"epochs": 1, "batch_size": 64}, 15_625),
        (5, "drop", {"max_steps": 10}, 10),
    ],
)
def test_steps_count_the_last_batch_where_it_is_kept(rows, last_batch, changes, steps):
    assert settings(**{"max_steps": None} | changes, last_batch=last_batch).steps(rows) == steps
