import math
import os
import signal

import pytest
import torch
from torch import nn

from tests.support.step_checkpoints import write_checkpoints_by_steps
from tests.support.toy_training import SEED, STEPS, KilledError, Toy, run, scripted
from tests.support.toys import training as settings
from workflow_scripts.columns import HISTORY
from workflow_scripts.errors import TrainingError
from workflow_scripts.models.dropout import DropoutMasks, dropout_keys, patched_dropout
from workflow_scripts.models.tokens import Packing
from workflow_scripts.training import loop
from workflow_scripts.training.loop import Preempted
from workflow_scripts.training.objective import LossOutput
from workflow_scripts.training.step import prepare_inputs


@pytest.fixture(autouse=True)
def checkpoints_by_steps(monkeypatch):
    write_checkpoints_by_steps(monkeypatch.setattr)


def same(one, two):
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


# What a training gives


def test_history_has_one_row_a_step_with_rate_and_norm(tmp_path):
    toy = Toy()
    outcome = run(toy, tmp_path, development=(4, scripted(toy, [0.1, 0.2, 0.3])))
    history = outcome.history
    assert history.schema == HISTORY
    assert history["step"].to_pylist() == toy.asked == list(range(1, STEPS + 1))
    rates = [settings(learning_rate=0.05).lr(step, STEPS) for step in range(1, STEPS + 1)]
    assert history["learning_rate"].to_pylist() == pytest.approx(rates)
    scores = {4: 0.1, 8: 0.2, 10: 0.3}  # every fourth, and after the last
    assert history["dev_score"].to_pylist() == [scores.get(step) for step in range(1, STEPS + 1)]


def test_several_steps_are_adamw_on_clipped_gradients(tmp_path):
    """Written out: a first step alone does not tell how long its gradient was."""

    def steep(step, loss):
        return loss * (100 if step == 2 else 0.1)

    toy, reference, steps = Toy(steep), Toy(steep), 4
    history = run(toy, tmp_path, steps=steps, max_gradient_norm=0.5).history
    named = dict(reference.module.named_parameters())
    first, second = ({name: torch.zeros_like(p) for name, p in named.items()} for _ in range(2))
    norms = []
    for step in range(1, steps + 1):
        reference.module.zero_grad()
        reference.module.train()
        own, keys = prepare_inputs(reference, SEED, step)
        with dropout_keys(keys), patched_dropout(DropoutMasks(Packing.of(torch.ones(1, 1)))):
            reference.loss(own).loss.backward()
        learning = {name: p for name, p in named.items() if p.grad is not None}
        norms.append(math.sqrt(sum(float((p.grad**2).sum()) for p in learning.values())))
        rate = 0.05 * (steps - step + 1) / steps
        for name, p in learning.items():
            gradient = p.grad * min(1, 0.5 / norms[-1])
            first[name] = 0.9 * first[name] + 0.1 * gradient
            second[name] = 0.999 * second[name] + 0.001 * gradient**2
            mean, square = first[name] / (1 - 0.9**step), second[name] / (1 - 0.999**step)
            p.data = p.data * (1 - rate * 0.01) - rate * mean / (square.sqrt() + 1e-8)
    assert norms[1] > 0.5 > norms[0]
    assert history["gradient_norm"].to_pylist() == pytest.approx(norms, rel=1e-4)  # before they are cut
    for name, weight in reference.weights().items():
        torch.testing.assert_close(toy.weights()[name], weight, rtol=1e-4, atol=1e-5)


class Steep(Toy):
    """The same with a parameter that has a rate of its own, and a gradient longer than all others."""

    def __init__(self):
        super().__init__()
        self.module.register_parameter("c", nn.Parameter(torch.zeros(())))
        self.lr_budgets = {"c": 1.0}

    def loss(self, inputs):
        return LossOutput(super().loss(inputs).loss + 1000 * self.module.c)


def test_a_rate_of_its_own_shortens_no_other_gradient(tmp_path):
    """A parameter with a rate of its own shortens no gradient of the others."""
    plain, steep = Toy(), Steep()
    for name, toy in (("plain", plain), ("steep", steep)):
        run(toy, tmp_path / name, max_gradient_norm=0.5)
    weights = steep.weights()
    assert weights.pop("c") != 0
    assert same(weights, plain.weights())


def test_weight_decay_spares_a_parameter_with_a_rate_of_its_own(tmp_path):
    plain, decayed = Steep(), Steep()
    run(plain, tmp_path / "plain", weight_decay=0.0)
    run(decayed, tmp_path / "decayed", weight_decay=0.5)
    assert torch.equal(plain.weights()["c"], decayed.weights()["c"])
    assert not same(plain.weights(), decayed.weights())


def test_every_step_drops_out_whatever_mode_an_evaluation_leaves(tmp_path):
    plain, left = Toy(), Toy()
    left.module.eval()

    def score():
        left.module.eval()
        return 0.5

    histories = [
        run(plain, tmp_path / "plain", development=(2, lambda: 0.5)).history,
        run(left, tmp_path / "left", development=(2, score)).history,
    ]
    assert histories[0].equals(histories[1])


@pytest.mark.parametrize(("precision", "product"), [("float32", torch.float32), ("bfloat16", torch.bfloat16)])
def test_products_have_the_precision_that_is_asked_for(tmp_path, precision, product):
    """Products have the precision that is asked for and weights stay float32."""
    toy, seen = Toy(), set()
    toy.module[0].register_forward_hook(lambda _module, _inputs, output: seen.add(output.dtype))
    run(toy, tmp_path, precision=precision)
    assert seen == {product}
    assert {weight.dtype for weight in toy.weights().values()} == {torch.float32}


def test_the_weights_that_scored_best_are_kept(tmp_path):
    toy, seen = Toy(), []
    run(toy, tmp_path, development=(2, scripted(toy, [0.1, 0.9, 0.3, 0.9, 0.2], seen)))
    assert len(seen) == 5
    assert same(toy.weights(), seen[1])  # of equals the first
    assert not same(seen[1], seen[3])


def test_without_a_development_set_the_last_weights_are_kept(tmp_path):
    toy, seen = Toy(), []
    run(toy, tmp_path / "a", development=(STEPS, scripted(toy, [0.5], seen)))
    other = Toy()
    run(other, tmp_path / "b")
    assert same(other.weights(), seen[0])


@pytest.mark.parametrize("at_once", [3, 100])
def test_steps_read_together_give_what_steps_read_singly_give(tmp_path, monkeypatch, at_once):
    """As on a GPU: the history, the development scores between, and the step of an error."""
    alone = run(Toy(), tmp_path / "a", development=(4, scripted(Toy(), [0.1, 0.2, 0.3])))
    monkeypatch.setitem(loop.STEPS_READ_AT_ONCE, "cpu", at_once)
    together = run(Toy(), tmp_path / "b", development=(4, scripted(Toy(), [0.1, 0.2, 0.3])))
    assert together.history == alone.history
    toy = Toy(lambda step, loss: loss * float("nan") if step == 6 else loss)
    with pytest.raises(TrainingError, match="loss nan at step 6"):
        run(toy, tmp_path / "c")
    assert toy.asked[-1] == (7 if at_once == 3 else 8)  # a checkpoint after the fourth reads, too


# Stopping and going on


@pytest.mark.parametrize("stop", [3, 5, 8, 9, 10])
def test_a_killed_training_keeps_the_best_weights_from_before(tmp_path, stop):
    """Scores fall after the first, which lies before the checkpoint of step 4."""

    def kill(step, loss):
        if step == stop:
            raise KilledError
        return loss

    scores, whole = [0.4, 0.1, 0.2, 0.3], Toy()
    expected = run(whole, tmp_path / "whole", development=(3, scripted(whole, scores)))
    toy = Toy(kill)
    with pytest.raises(KilledError):
        run(toy, tmp_path / "killed", development=(3, scripted(toy, scores)))
    toy, start = Toy(), (stop - 1) // 4 * 4
    torch.manual_seed(99)  # where random numbers stand decides nothing
    outcome = run(toy, tmp_path / "killed", development=(3, scripted(toy, scores[start // 3 :])))
    assert toy.asked[0] == start + 1
    assert same(toy.weights(), whole.weights())
    assert outcome.history == expected.history


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_request_to_stop_ends_the_step_saves_and_says_so(tmp_path, number):
    whole = Toy()
    expected = run(whole, tmp_path / "whole")

    def ask(step, loss):
        if step == 6:
            os.kill(os.getpid(), number)
        return loss

    toy = Toy(ask)
    before = signal.getsignal(number)
    with pytest.raises(Preempted, match="stopped after step 6 of 10"):
        run(toy, tmp_path / "stopped")
    assert signal.getsignal(number) == before
    assert toy.asked == [1, 2, 3, 4, 5, 6]
    assert [path.name for path in (tmp_path / "stopped").iterdir()] == ["step00000006"]
    again = Toy()
    outcome = run(again, tmp_path / "stopped")
    assert again.asked == [7, 8, 9, 10]
    assert same(again.weights(), whole.weights())
    assert outcome.history == expected.history


def test_checkpoints_of_other_devices_or_chunks_are_not_used(tmp_path, monkeypatch):
    """Rounding differs between kinds of devices, and sums are taken in another order."""
    names = []
    monkeypatch.setattr(loop, "load_checkpoint", lambda folder, name: names.append(name))
    run(Toy(), tmp_path, steps=1)
    run(Toy(), tmp_path, steps=1, chunk=2)
    assert len(set(names)) == 2
    assert all(name.startswith("f cpu") for name in names)


# Patience

SCORES = [0.1, 0.4, 0.3, 0.4, 0.2, 0.5, 0.6]
"""After each second step; the best of the first five is the second."""


@pytest.mark.parametrize(
    ("patience", "last"), [(None, 14), (1, 6), (2, 8), (3, 10), (4, 14), (7, 14)], ids=str
)
def test_a_training_ends_after_looks_without_a_better_score(tmp_path, patience, last):
    """An equal score is no better one; rates, and all else until then, are those of the full length."""
    whole, toy, seen = Toy(), Toy(), []
    expected = run(whole, tmp_path / "whole", 14, (2, scripted(whole, SCORES, seen)))
    outcome = run(toy, tmp_path / "patient", 14, (2, scripted(toy, SCORES)), patience=patience)
    assert outcome.history == expected.history.slice(0, last)
    assert toy.asked == list(range(1, last + 1))
    best = SCORES.index(max(SCORES[: last // 2]))
    assert same(toy.weights(), seen[best])


@pytest.mark.parametrize("stop", [3, 4, 6, 9, 10])
def test_a_killed_training_with_patience_ends_at_the_same_step(tmp_path, stop):
    """A training with patience that was killed ends at the same step."""

    def kill(step, loss):
        if step == stop:
            raise KilledError
        return loss

    whole = Toy()
    expected = run(whole, tmp_path / "whole", 14, (2, scripted(whole, SCORES)), patience=3)
    toy, start = Toy(kill), (stop - 1) // 4 * 4
    with pytest.raises(KilledError):
        run(toy, tmp_path / "killed", 14, (2, scripted(toy, SCORES)), patience=3)
    toy = Toy()
    outcome = run(toy, tmp_path / "killed", 14, (2, scripted(toy, SCORES[start // 2 :])), patience=3)
    assert toy.asked == list(range(start + 1, 11))
    assert outcome.history == expected.history
    assert same(toy.weights(), whole.weights())


def test_a_stop_at_the_last_look_of_patience_still_ends(tmp_path, capsys):
    """A request to stop at the last look of patience is no reason to go on."""

    def ask(step, loss):
        if step == 10:
            os.kill(os.getpid(), signal.SIGTERM)
        return loss

    toy = Toy(ask)
    outcome = run(toy, tmp_path, 14, (2, scripted(toy, SCORES)), patience=3)
    assert len(outcome.history) == 10
    said = "ended after step 10 of 14: 3 evaluations without a better development score"
    assert said in capsys.readouterr().err


# Numbers that are none


class Spoilt(torch.autograd.Function):
    """A loss whose gradient is nan."""

    @staticmethod
    def forward(ctx, value):
        return value.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * float("nan")


def too_large(_loss):
    raise torch.OutOfMemoryError("CUDA out of memory")


WRONG = {
    "nan": (lambda loss: loss * float("nan"), "loss nan at step 6"),
    "-inf": (lambda loss: loss * -float("inf"), "loss -inf at step 6"),
    "gradient": (Spoilt.apply, "gradient norm nan at step 6"),
    "memory": (too_large, r"\d+ sentences at a time .* Set training\.chunk to \d+ or less"),
}


@pytest.mark.parametrize(("spoil", "complaint"), WRONG.values(), ids=WRONG)
def test_a_failing_step_is_named_and_finished_work_is_kept(tmp_path, spoil, complaint):
    """A step that goes wrong is named and what was finished is kept."""
    toy = Toy(lambda step, loss: spoil(loss) if step == 6 else loss)
    with pytest.raises(TrainingError, match=complaint):
        run(toy, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["step00000004"]


def test_a_warm_up_that_outlasts_the_steps_is_refused(tmp_path):
    with pytest.raises(
        TrainingError,
        match=r"training\.warmup_steps: 11, but the schedule has 10 steps\. Set it to 10 or less\.",
    ):
        run(Toy(), tmp_path, warmup_steps=11, epochs=1, max_steps=None)  # the steps follow from the corpus


def test_a_development_score_that_is_not_finite_stops(tmp_path):
    toy = Toy()
    with pytest.raises(TrainingError, match="development score nan at step 4"):
        run(toy, tmp_path, development=(2, scripted(toy, [0.1, float("nan"), 0.2, 0.3, 0.4])))


def test_weights_that_are_not_finite_are_not_given_out(tmp_path):
    """Weights that are not finite after the last step are not given out."""
    toy = Toy()

    def break_weights(step, loss):
        if step == STEPS:
            with torch.no_grad():
                toy.module.unused.fill_(float("inf"))
        return loss

    toy._spoil = break_weights
    with pytest.raises(TrainingError, match="unused is not finite after step 10"):
        run(toy, tmp_path)
