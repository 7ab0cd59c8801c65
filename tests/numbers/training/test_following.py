"""Rows beside the log of a training that runs: those of its history, also after a kill."""

import os
import shutil
import signal
from functools import partial
from types import SimpleNamespace

import pandas as pd
import pyarrow.parquet as pq
import pytest

from tests.support import training_jobs
from tests.support.step_checkpoints import write_checkpoints_by_steps
from tests.support.toy_training import KilledError, Toy, run, scripted
from workflow_scripts.columns import HISTORY
from workflow_scripts.training import following, loop

TIMING = ["steps_per_second", "time"]
STEPS = 10


@pytest.fixture(autouse=True)
def checkpoints_by_steps(monkeypatch):
    write_checkpoints_by_steps(monkeypatch.setattr)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return training_jobs.make_inputs(tmp_path_factory.mktemp("inputs"))


def untimed(table):
    """The bytes of all columns but those of timing."""
    return [line.rsplit(",", 2)[0] for line in table.read_text().splitlines()]


def followed(toy, folder, **named):
    """A training with a log in the folder, the table of its rows, and its history."""
    scores = scripted(toy, named.pop("scores", [0.1, 0.2, 0.3]))
    outcome = run(toy, folder / "checkpoints", development=(4, scores), log=folder / "job.log", **named)
    return folder / "job.csv", outcome.history


def killing(stop):
    def spoil(step, loss):
        if step == stop:
            raise KilledError
        return loss

    return spoil


def job(folder, rule, kill=None, cache=None):
    """Exit code of a training job in a process of its own, whose standard output is its log."""
    call = training_jobs.training_call(rule, training_jobs.config(rule))
    call["files"]["operational"]["workplace"] = training_jobs.NOWHERE | {"cache": cache}

    def act():
        os.chdir(folder)
        write_checkpoints_by_steps()
        half = loop.prepare_inputs

        def perhaps(objective, seed, step):
            if step == kill:
                os.kill(os.getpid(), signal.SIGKILL)
            return half(objective, seed, step)

        loop.prepare_inputs = perhaps
        training_jobs.begin_here(rule, call)

    return training_jobs.in_child(act, folder / "job.log")


@pytest.mark.parametrize("rule", ["train_encoder", "continue_mlm"])
def test_a_job_killed_twice_has_the_rows_of_one_left_in_peace(inputs, tmp_path, rule):
    whole, killed = (shutil.copytree(inputs, tmp_path / name) for name in ("whole", "killed"))
    assert job(whole, rule) == 0, (whole / "job.log").read_text()
    assert [job(killed, rule, kill) for kill in (6, 11, None)] == [-signal.SIGKILL] * 2 + [0]
    assert untimed(whole / "job.csv") == untimed(killed / "job.csv")
    rows = pd.read_csv(killed / "job.csv")
    assert rows["step"].to_list() == list(range(1, training_jobs.STEPS + 1))
    assert {*rows["steps"]} == {training_jobs.STEPS}
    assert (rows["steps_per_second"] > 0).all()
    assert pd.to_datetime(rows["time"]).is_monotonic_increasing
    history = pq.read_table(killed / "run/history.parquet").to_pandas()
    pd.testing.assert_frame_equal(rows[HISTORY.names], history, check_dtype=False, rtol=1e-8)


def test_a_restored_training_leaves_no_rows_of_another(inputs, tmp_path):
    """A training restored from the cache leaves no rows of another."""
    folder = shutil.copytree(inputs, tmp_path / "here")
    assert job(folder, "train_encoder", cache="cache") == 0
    assert (folder / "job.csv").exists()
    shutil.rmtree(folder / "run")
    (folder / "job").mkdir()
    assert job(folder, "train_encoder", cache="cache") == 0
    assert "restored from" in (folder / "job.log").read_text()
    assert not (folder / "job.csv").exists()
    assert not (folder / "job").exists()


@pytest.mark.parametrize(("at_once", "rows"), [(1, 5), (3, 4), (100, 4)])
def test_rows_are_there_once_the_host_has_read_them(tmp_path, monkeypatch, at_once, rows):
    """Nothing is read of a GPU for their sake: those of step 4 are read since it is scored, and 5 with the next."""
    monkeypatch.setitem(loop.STEPS_READ_AT_ONCE, "cpu", at_once)
    seen = []

    def look(step, loss):
        if step == 6:
            seen.append((tmp_path / "job.csv").read_text())
        return loss

    followed(Toy(look), tmp_path)
    assert len(seen) == 1
    assert seen[0].endswith("\n")
    assert len(seen[0].splitlines()) == 1 + rows


def test_rows_before_a_loss_that_is_not_finite_are_there(tmp_path, monkeypatch):
    monkeypatch.setitem(loop.STEPS_READ_AT_ONCE, "cpu", 100)
    toy = Toy(lambda step, loss: loss * float("nan") if step == 7 else loss)
    with pytest.raises(loop.TrainingError, match="loss nan at step 7"):
        followed(toy, tmp_path)
    assert pd.read_csv(tmp_path / "job.csv")["step"].to_list() == [1, 2, 3, 4, 5, 6]


def test_rows_of_another_training_are_replaced(tmp_path):
    table, history = followed(Toy(), tmp_path)
    whole = untimed(table)
    with pytest.raises(KilledError):
        followed(Toy(killing(7)), tmp_path, fingerprint="g")
    with pytest.raises(KilledError):  # which leaves no checkpoint
        followed(Toy(killing(3)), tmp_path, fingerprint="h", learning_rate=0.01)
    assert untimed(table) != whole[:3]
    assert len(untimed(table)) == 3
    toy = Toy()
    _, again = followed(toy, tmp_path, fingerprint="g", scores=[0.2, 0.3])
    assert toy.asked[0] == 5
    assert again == history
    assert untimed(table) == whole
    assert pd.read_csv(table)[TIMING].isna().all(axis=1).to_list() == [True] * 4 + [False] * 6


def test_a_file_that_cannot_be_written_ends_no_training(tmp_path, capsys):
    (tmp_path / "job.csv").mkdir()
    _, history = followed(Toy(), tmp_path)
    assert len(history) == STEPS
    assert capsys.readouterr().err.count("The training continues without them.") == 1
    assert not (tmp_path / "job").exists()


class Writer:
    """TensorBoard's writer, which notes what it is given."""

    def __init__(self, made, folder, purge_step):
        self.scalars = []
        made.append((folder, purge_step, self.scalars))

    def add_scalar(self, name, value, step):
        self.scalars.append((name, value, step))

    def close(self):
        self.scalars.append("closed")


@pytest.fixture
def written(monkeypatch):
    """Folder, first step and scalars of each writer of a TensorBoard that counts as installed."""
    made = []
    monkeypatch.setattr(following, "find_spec", lambda name: name == "tensorboard")
    module = SimpleNamespace(SummaryWriter=partial(Writer, made))
    monkeypatch.setattr(following, "import_module", {"torch.utils.tensorboard": module}.__getitem__)
    return made


def test_tensorboard_is_given_the_rows_from_the_checkpoint_on(tmp_path, written):
    """TensorBoard is given the same rows from the checkpoint on."""
    with pytest.raises(KilledError):
        followed(Toy(killing(7)), tmp_path)
    _, history = followed(Toy(), tmp_path, scores=[0.2, 0.3])
    rows = history.to_pandas().set_index("step")
    (folder, first, before), (_, then, after) = written
    assert (folder, first, then) == (str(tmp_path / "job"), 1, 5)
    assert {step for _, _, step in before[:-1]} == {1, 2, 3, 4, 5, 6}
    assert after.pop() == "closed"
    expected = rows.loc[5:].reset_index().melt("step").dropna()
    assert {*after} == {*expected[["variable", "value", "step"]].itertuples(index=False, name=None)}


def test_tensorboard_that_fails_ends_no_training(tmp_path, written, monkeypatch, capsys):
    monkeypatch.setattr(Writer, "add_scalar", lambda *given: 1 / 0)
    _, history = followed(Toy(), tmp_path)
    assert len(history) == STEPS
    assert "division by zero. The training continues" in capsys.readouterr().err
