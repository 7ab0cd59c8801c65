"""Trainings that were killed, stopped or damaged end in the same bytes as one that was not."""

import importlib
import itertools
import os
import shutil
import signal
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

from tests.support import training_jobs
from tests.support.step_checkpoints import CHECKPOINT_EVERY, write_checkpoints_by_steps
from workflow_scripts.columns import HISTORY
from workflow_scripts.errors import EXIT_TRY_AGAIN
from workflow_scripts.provenance.record import git_state

FIRST, SECOND = CHECKPOINT_EVERY, 2 * CHECKPOINT_EVERY
"""Steps of the checkpoints of a run left in peace."""
BETWEEN = FIRST + 2
FILES = [*(f"{group}.safetensors" for group in ("model", "optimiser", "state", "best")), "COMPLETE.json"]
"""Files of a checkpoint in the order they are written."""
OTHER = MappingProxyType({"learning_rate": 0.001})
LOOP, CHECKPOINTS = "workflow_scripts.training.loop", "workflow_scripts.training.checkpoints"


def signalled(number: int) -> None:
    os.kill(os.getpid(), number)


die = partial(signalled, signal.SIGKILL)


class End(NamedTuple):
    """The call of a function, by its number, before which something is done to the training."""

    module: str
    name: str
    number: int
    act: Callable[[], None] = die

    def prepare(self) -> None:
        module, calls = importlib.import_module(self.module), itertools.count(1)
        function = getattr(module, self.name)

        def wrapped(*given: Any, **named: Any) -> Any:
            if next(calls) == self.number:
                self.act()
            return function(*given, **named)

        setattr(module, self.name, wrapped)


class Case(NamedTuple):
    """Runs that end early, then damage, then a run that should end well."""

    start: int
    """Step at which the last run should begin."""
    ends: tuple[End, ...]
    rule: str = "train_encoder"
    code: int = -signal.SIGKILL
    """Exit code of the runs that end early."""
    damage: Callable[[Path], None] = lambda _folder: None
    then: Mapping[str, Any] = MappingProxyType({})
    """Settings that the last run has changed."""


def one(folder: Path, name: str) -> Path:
    """A file of the one checkpoint that is there, or of its newest."""
    return max(folder.glob(f"run/model.checkpoints/step*/{name}"))


def flip(name: str, folder: Path) -> None:
    content = bytearray(one(folder, name).read_bytes())
    content[len(content) * 2 // 3] ^= 2
    one(folder, name).write_bytes(content)


def tear(name: str, folder: Path) -> None:
    content = one(folder, name).read_bytes()
    one(folder, name).write_bytes(
        content[: len(content) // 2]
    )  # a file system that does not keep its promise


def half_removed() -> None:
    min(Path("run/model.checkpoints").glob("step*/model.safetensors")).unlink()
    die()


BETWEEN_STEPS = (End(LOOP, "prepare_inputs", BETWEEN),)
AT_REMOVAL = 3  # behind those of what is left of the first and the second checkpoint, of which nothing is
ASKED, CTRL_C = partial(signalled, signal.SIGTERM), partial(signalled, signal.SIGINT)
STOPPED = (End(LOOP, "prepare_inputs", BETWEEN, ASKED),)
CASES = {
    "killed after the first checkpoint": Case(FIRST + 1, BETWEEN_STEPS),
    "killed twice": Case(SECOND + 1, (*BETWEEN_STEPS, End(LOOP, "prepare_inputs", SECOND + 2 - FIRST))),
    "killed writing the first checkpoint": Case(1, (End(CHECKPOINTS, "atomic", 3),)),
    **{
        f"killed before {name} is written": Case(FIRST + 1, (End(CHECKPOINTS, "atomic", number),))
        for number, name in enumerate(FILES, start=len(FILES) + 1)
    },
    "killed with the manifest half written": Case(
        FIRST + 1, (End("shutil", "rmtree", AT_REMOVAL),), damage=partial(tear, "COMPLETE.json")
    ),
    "killed removing the old checkpoint": Case(
        SECOND + 1, (End("shutil", "rmtree", AT_REMOVAL, half_removed),)
    ),
    "killed writing the history": Case(
        SECOND + 1, (End("workflow_scripts.jobs.train_encoder", "write_table", 1),)
    ),
    "asked to stop": Case(BETWEEN + 1, STOPPED, code=EXIT_TRY_AGAIN),
    "Ctrl-C": Case(BETWEEN + 1, (End(LOOP, "prepare_inputs", BETWEEN, CTRL_C),), code=EXIT_TRY_AGAIN),
    "asked to stop in the last step": Case(
        1, (End(LOOP, "prepare_inputs", training_jobs.STEPS, ASKED),), code=0
    ),
    "other settings": Case(1, BETWEEN_STEPS, then=OTHER),
    "a bit of the optimiser changed": Case(1, BETWEEN_STEPS, damage=partial(flip, "optimiser.safetensors")),
    "a bit of the manifest changed": Case(1, BETWEEN_STEPS, damage=partial(flip, "COMPLETE.json")),
    "best weights missing": Case(1, BETWEEN_STEPS, damage=lambda folder: one(folder, FILES[3]).unlink()),
    "mlm: killed after the first checkpoint": Case(FIRST + 1, BETWEEN_STEPS, "continue_mlm"),
    "mlm: asked to stop": Case(BETWEEN + 1, STOPPED, "continue_mlm", EXIT_TRY_AGAIN),
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Inputs of trainings, with everything imported and looked up that their processes need."""
    git_state()  # asked once: somebody may commit meanwhile
    for name in ("jobs.train_encoder", "jobs.continue_mlm", "methods.simcse"):
        importlib.import_module(f"workflow_scripts.{name}")
    importlib.import_module("sentence_transformers")  # in which models are saved
    for rule in ("train_encoder", "continue_mlm"):
        training_jobs.training_call(rule, training_jobs.config(rule))
    return training_jobs.make_inputs(tmp_path_factory.mktemp("inputs"))


def note_steps():
    """Write the steps that this process takes into a file."""
    module, steps = importlib.import_module(LOOP), Path("steps")
    function = module.prepare_inputs
    steps.unlink(missing_ok=True)

    def noting(objective, seed, step):
        with steps.open("a") as file:
            file.write(f"{step}\n")
        return function(objective, seed, step)

    module.prepare_inputs = noting


def play(folder, case, settings, end=None):
    """Exit code of a training in a process of its own, which may end early."""

    def act():
        os.chdir(folder)
        write_checkpoints_by_steps()
        note_steps()
        if end:
            end.prepare()
        training_jobs.run_here(case.rule, training_jobs.config(case.rule, **settings))

    return training_jobs.in_child(act, folder / "log")


def made(folder):
    """All files except the cache, and the steps of the last process."""
    files = training_jobs.files_of(folder / "run")
    return files, list(map(int, (folder / "steps").read_text().split()))


@pytest.fixture(scope="module")
def whole(inputs, tmp_path_factory):
    """Outputs of an uninterrupted training, of a rule with some settings changed."""
    known = {}

    def files(case):
        key = (case.rule, bool(case.then))
        if key not in known:
            folder = shutil.copytree(inputs, tmp_path_factory.mktemp("whole") / "here")
            assert play(folder, case, case.then) == 0, (folder / "log").read_text()
            known[key], steps = made(folder)
            assert steps == list(range(1, training_jobs.STEPS + 1))
            history = pq.read_table(folder / "run/history.parquet")
            assert history.schema.remove_metadata() == HISTORY
            assert history["step"].to_pylist() == steps
        return known[key]

    return files


QUICK = (
    "killed after the first checkpoint", "killed removing the old checkpoint", "killed writing the history",
    "asked to stop", "a bit of the optimiser changed", "other settings", "mlm: killed after the first checkpoint",
)  # fmt: skip


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[] if name in QUICK else pytest.mark.slow) for name, case in CASES.items()],
    ids=CASES,
)
def test_the_result_is_that_of_a_training_left_in_peace(inputs, whole, tmp_path, case):
    """Every file of the model folder and the tables, nothing beside them, from the last whole checkpoint on."""
    folder = shutil.copytree(inputs, tmp_path / "here")
    assert [play(folder, case, {}, end) for end in case.ends] == [case.code] * len(case.ends)
    log = (folder / "log").read_text()
    if case.code == EXIT_TRY_AGAIN:
        assert [path.name for path in folder.glob("run/*")] == ["model.checkpoints"]
        assert (
            f"Preempted: stopped after step {BETWEEN} of {training_jobs.STEPS}; run the job again to go on."
            in log
        )
    case.damage(folder)
    assert play(folder, case, case.then) == 0, (folder / "log").read_text()
    files, steps = made(folder)
    assert files == whole(case)
    assert len(files) > 6
    assert steps == list(range(case.start, training_jobs.STEPS + 1))
    assert "Traceback" not in (folder / "log").read_text()


def test_there_is_something_to_compare(whole):
    plain, other = whole(CASES["asked to stop"]), whole(CASES["other settings"])
    assert plain.keys() == other.keys()
    for name in ("model/model.safetensors", "model/record.json", "history.parquet"):
        assert plain[name] != other[name]
