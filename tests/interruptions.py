"""Trainings that are killed, stopped or damaged, and run again: python -m tests.interruptions FOLDER.

One process imports everything once and forks a child for each run, which kills itself where its case
says. What became of each case is written to FOLDER/outcomes.json for the tests to look at.
"""

import functools
import importlib
import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from tests.checkpointing import CHECKPOINT_EVERY, write_checkpoints_by_steps
from tests.jobs import MODEL, STEPS, config, files_of, make_inputs, run_here

GROUPS = ("model", "optimiser", "state", "best")
FILES = [*(f"{group}.safetensors" for group in GROUPS), "COMPLETE.json"]
"""Files of a checkpoint in the order they are written."""
TRY_AGAIN = 75


class Case(NamedTuple):
    """Runs that end early, then damage, then a run that should end well."""

    rule: str
    start: int
    """Step at which the last run should begin."""
    interruptions: tuple[Callable[[], None], ...] = ()
    code: int = -signal.SIGKILL
    """What the runs that end early should end with."""
    damage: Callable[[Path], None] | None = None
    then: Mapping[str, Any] = MappingProxyType({})
    """Settings that the last run has changed."""


def note_steps() -> None:
    """Write down which steps a run takes."""
    from workflow_scripts.training import loop

    step = loop._step

    def wrapped(state: Any, *others: Any) -> None:
        with Path("steps").open("a") as file:
            file.write(f"{state.step + 1}\n")
        step(state, *others)

    loop._step = wrapped


# Interruptions: each changes the program inside a child


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def before_step(number: int) -> None:
    """Kill between two steps."""
    _wrap_step(number, die)


def asked_in_step(number: int, request: signal.Signals = signal.SIGTERM) -> None:
    """Ask to stop, as a scheduler does before it kills, or a person by Ctrl-C."""
    _wrap_step(number, lambda: os.kill(os.getpid(), request))


def _wrap_step(number: int, act: Callable[[], None]) -> None:
    from workflow_scripts.training import loop

    step = loop._step

    def wrapped(state: Any, *others: Any) -> None:
        if state.step + 1 == number:
            act()
        step(state, *others)

    loop._step = wrapped


def at_write(number: int, moment: str) -> None:
    """Kill in the ``number``-th atomic write of a checkpoint file, over all checkpoints of the run."""
    from workflow_scripts.training import checkpoints

    atomic, written = checkpoints.atomic, 0

    @contextmanager
    def wrapped(path: Path) -> Iterator[Path]:
        nonlocal written
        written += 1
        now = written == number
        if now and moment == "before":
            die()
        with atomic(path) as temporary:
            yield temporary
            if now and moment == "torn":
                content = temporary.read_bytes()
                path.write_bytes(content[: len(content) // 2])  # a file system that does not keep its promise
                die()
            if now and moment == "unnamed":
                die()
        if now and moment == "after":
            die()

    checkpoints.atomic = wrapped


def in_removal() -> None:
    """Kill when the old checkpoint is half removed."""
    remove = shutil.rmtree

    def wrapped(path: Path, *others: Any, **named: Any) -> None:
        if Path(path).name == f"step{CHECKPOINT_EVERY:08d}" and Path(path).exists():
            next(Path(path).glob("model*")).unlink()
            die()
        remove(path, *others, **named)

    shutil.rmtree = wrapped


def in_sealing() -> None:
    """Kill when the model folder is filled and not checksummed."""
    from workflow_scripts.provenance import artefacts

    artefacts._write_record_file = lambda *_: die()


def in_writing_history(rule: str) -> None:
    """Kill when the model is in its place and the history is not."""
    _module(rule).write_table = lambda *_: die()


def in_writing_speed(rule: str) -> None:
    """Kill when all is written and the checkpoints are still there."""
    _module(rule).write_speed = lambda *_: die()


def _module(rule: str) -> Any:
    return sys.modules[f"workflow_scripts.jobs.{rule}"]


# Damage, between the runs


def flipped(name: str, folder: Path) -> None:
    """Change one bit in the middle of a file of the checkpoint."""
    (file,) = folder.glob(f"run/model.checkpoints/step*/{name}")
    content = bytearray(file.read_bytes())
    content[len(content) * 2 // 3] ^= 2
    file.write_bytes(content)


def missing(name: str, folder: Path) -> None:
    """Remove a file of the checkpoint."""
    (file,) = folder.glob(f"run/model.checkpoints/step*/{name}")
    file.unlink()


P = functools.partial
EARLIER, SECOND = CHECKPOINT_EVERY, 2 * CHECKPOINT_EVERY
"""Steps of the checkpoints of a run left in peace."""
BETWEEN = EARLIER + 2
OTHER = MappingProxyType({"learning_rate": 0.001})


def cases() -> dict[str, Case]:
    """Every case by its name."""
    simcse, mlm = P(Case, "train_encoder"), P(Case, "continue_mlm")
    between = (P(before_step, BETWEEN),)
    made = {"nothing": simcse(1), "nothing, other settings": simcse(1, then=OTHER), "mlm: nothing": mlm(1)}
    made |= {
        "killed after the first checkpoint": simcse(EARLIER + 1, between),
        "killed twice": simcse(SECOND + 1, (*between, P(before_step, SECOND + 2))),
        "killed writing the first checkpoint": simcse(1, (P(at_write, 3, "torn"),)),
        "killed with the manifest written": simcse(SECOND + 1, (P(at_write, 2 * len(FILES), "after"),)),
        "killed removing the old checkpoint": simcse(SECOND + 1, (in_removal,)),
        "killed embedding a checksum in the model": simcse(SECOND + 1, (in_sealing,)),
        "killed writing the history": simcse(SECOND + 1, (P(in_writing_history, "train_encoder"),)),
        "killed with all written": simcse(SECOND + 1, (P(in_writing_speed, "train_encoder"),)),
        "asked to stop": simcse(BETWEEN + 1, (P(asked_in_step, BETWEEN),), TRY_AGAIN),
        "Ctrl-C": simcse(BETWEEN + 1, (P(asked_in_step, BETWEEN, signal.SIGINT),), TRY_AGAIN),
        "asked to stop in the last step": simcse(1, (P(asked_in_step, STEPS),), 0),
        "other settings": simcse(1, between, then=OTHER),
        "mlm: killed after the first checkpoint": mlm(EARLIER + 1, between),
        "mlm: asked to stop": mlm(BETWEEN + 1, (P(asked_in_step, BETWEEN),), TRY_AGAIN),
    }
    moments = ("before", "torn", "unnamed", "after", "torn")
    for number, (name, moment) in enumerate(zip(FILES, moments, strict=True), start=len(FILES) + 1):
        made[f"killed {moment} writing {name}"] = simcse(EARLIER + 1, (P(at_write, number, moment),))
    for name in ("optimiser.safetensors", "COMPLETE.json"):
        made[f"a bit of {name} changed"] = simcse(1, between, damage=P(flipped, name))
    made["best.safetensors missing"] = simcse(1, between, damage=P(missing, "best.safetensors"))
    return made


# Running


def in_child(act: Callable[[], None], log: Path) -> int:
    """Run ``act`` in a fork; returns its exit code, or minus the signal that ended it."""
    child = os.fork()
    if child == 0:
        code = 1
        with log.open("a") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        try:
            act()
            code = 0
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 1
            sys.stderr.write(f"{left.code}\n")
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def outcome(case: Case, folder: Path) -> dict[str, Any]:
    """Play one case in ``folder`` and say what became of it."""

    def run(interruption: Callable[[], None], training: Mapping[str, Any]) -> None:
        os.chdir(folder)
        note_steps()
        interruption()
        run_here(case.rule, config(case.rule, **training))

    log = folder / "log"
    codes = [in_child(lambda act=act: run(act, {}), log) for act in case.interruptions]
    between = {
        "codes": codes,
        "model": (folder / MODEL).exists(),
        "checkpoints": sorted(path.name for path in folder.glob("run/model.checkpoints/*")),
    }
    if case.damage:
        case.damage(folder)
    (folder / "steps").unlink(missing_ok=True)
    shutil.rmtree(folder / "run/.kept", ignore_errors=True)  # one that ended well would be put back
    final = in_child(lambda: run(lambda: None, case.then), log)
    left = sorted(path.name for path in (folder / "run").iterdir() if not path.name.startswith("."))
    beside = files_of(folder / "run")
    files = files_of(folder / MODEL) | {
        name: beside.get(f"{name}.parquet") for name in ("history", "metrics")
    }
    steps = [int(line) for line in (folder / "steps").read_text().split()]
    ended = {"code": final, "left": left, "files": files, "steps": steps, "log": log.read_text()}
    return {"between": between} | ended


def main() -> None:
    """Play every case and write the outcomes."""
    from workflow_scripts.methods import load_method
    from workflow_scripts.provenance.closure import packages
    from workflow_scripts.provenance.origin import git_state

    root = Path(sys.argv[1])
    root.mkdir(exist_ok=True)
    git_state()  # asked once: somebody may commit meanwhile
    for rule in ("train_encoder", "continue_mlm"):
        importlib.import_module(f"workflow_scripts.jobs.{rule}")
        packages(f"jobs.{rule}")  # slow, and remembered
    load_method("simcse")
    write_checkpoints_by_steps()
    inputs = root / "inputs"
    assert in_child(lambda: make_inputs(inputs) and None, root / "log") == 0, (root / "log").read_text()
    outcomes = {}
    for number, (name, case) in enumerate(cases().items()):
        folder = Path(shutil.copytree(inputs, root / str(number)))
        outcomes[name] = outcome(case, folder)
    (root / "outcomes.json").write_text(json.dumps(outcomes, indent=1))


if __name__ == "__main__":
    main()
