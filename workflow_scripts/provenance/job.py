"""The command line that all entry scripts share: settings, code, packages, wildcards, files in and out."""

import argparse
import atexit
import fcntl
import gc
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.errors import DataError
from workflow_scripts.provenance import kept
from workflow_scripts.provenance.artefacts import RECORD_FILE, job_record
from workflow_scripts.provenance.job_log import named_in_logs, write_summary
from workflow_scripts.provenance.origin import origin_of
from workflow_scripts.provenance.record import Input, Record
from workflow_scripts.provenance.snapshot import check_code, check_loaded, check_packages

_STDOUT = 1
_held: dict[str, int] = {}
"""The lock of the running job, by its path: open, so that the kernel keeps it, as long as the process lives."""
_planned: set[str] = set()
"""Files of the code of all jobs that this process has begun."""
_keeping: list[Callable[[], None]] = []
"""What keeps the outputs of the running job when this process ends; none before it is known, and of some jobs."""


class Job(NamedTuple):
    """What a rule handed to its entry script."""

    start: Record
    """What is known of its artefacts before it begins."""
    inputs: dict[str, Path]
    outputs: dict[str, Path]
    timings: dict[str, Path]
    operational: dict[str, Any]
    """Settings that decide no result (``config.OPERATIONAL``), and are no part of the key."""
    service: dict[str, Any]
    """How a source from outside is asked, which decides no result either; empty for jobs that ask none."""
    measured: dict[str, list[Path]]
    """Speeds that it shows, of which none need be there."""

    @property
    def rule(self) -> str:
        """Name of the rule."""
        return self.start.rule

    @property
    def key(self) -> str:
        """Hash of all that decides what the job makes (``provenance.key``)."""
        return self.start.key

    @property
    def settings(self) -> dict[str, Any]:
        """The slice of the configuration that it reads."""
        return self.start.settings

    @property
    def wildcards(self) -> dict[str, str]:
        """What distinguishes it from other jobs of its rule."""
        return self.start.wildcards

    @property
    def artefacts(self) -> list[Path]:
        """What it writes that carries a record; a model folder stands for its files."""
        return [path.parent if path.name == RECORD_FILE else path for path in self.outputs.values()]

    def record(self, *, foreign: Mapping[str, Input] | None = None, labels: Sequence[str] = ()) -> Record:
        """The record of every artefact this job writes.

        Args:
            foreign: Role to a source from outside the pipeline (a package's file, a Hub revision).
            labels: Substitutions made by this job itself; those of its inputs are inherited.
        """
        if _log() is not None:  # a process of its own, which has loaded what it needs and nothing else
            check_loaded(_planned)
        more = {
            "inputs": self.start.inputs | dict(foreign or {}),
            "labels": sorted({*self.start.labels, *labels}),
            "origin": origin_of(self.start.meaning),
        }
        return self.start.model_copy(update=more)

    def many(self, role: str) -> list[Path]:
        """The files of an input that may be several, in the order of the command line."""
        return [path for key, path in self.inputs.items() if key.startswith(f"{role}/")]


def parse_job(
    rule: str,
    description: str | None,
    *,
    wildcards: Sequence[str] = (),
    inputs: Sequence[str] = (),
    many: Sequence[str] = (),
    optional: Sequence[str] = (),
    outputs: Sequence[str] = (),
    timings: Sequence[str] = (),
    operational: Sequence[str] = (),
    measured: Sequence[str] = (),
    beside: str = "",
    asks_outside: bool = False,
    always_runs: bool = False,
) -> Job:
    """Read the command line of the entry script of ``rule``; ``--help`` lists its arguments.

    Ends the process at once, and well, where the outputs of a job with the same key are kept: they are put in place.

    Args:
        rule: Name of the rule and of its entry script.
        description: The entry script's docstring.
        wildcards: Wildcards of the rule, each an argument.
        inputs: Roles of single input files.
        many: Roles that take any number of files.
        optional: Such roles that only some jobs of the rule have; they may be left out.
        outputs: Roles of the artefacts it writes.
        timings: Roles of files that hold speeds; they differ from run to run, so they are no artefacts.
        operational: Numbers among the settings that decide no result, each an argument.
        measured: Roles of such files that it shows, where they are there. They are no part of its key, and a job
            whose page shows them marks the place (``audit.varying``).
        beside: One of ``optional`` whose labels do not travel on (``artefacts.job_record``).
        asks_outside: Whether it asks translators or language models, of whose answers its key knows nothing: such a
            job always runs. It has the argument ``--service``: whole blocks of the configuration, by name.
        always_runs: Whether it does what its key does not tell, so that no kept outputs stand in for it.

    Raises:
        DataError: if this very job is running already, an input is missing, damaged or made for another place,
            or code or packages are other ones than those with which the job was planned.
    """
    _acquire_job_lock()
    _keeping.clear()
    parser = _parser(rule, description)
    for name in wildcards:
        parser.add_argument(f"--{name}", required=True, help=f"the job's {name}")
    for name in inputs:
        parser.add_argument(f"--{name}", type=Path, required=True, help="file to read")
    for name in optional:
        parser.add_argument(f"--{name}", type=Path, nargs="*", default=[], help="files to read, if any")
    for name in many:
        parser.add_argument(f"--{name}", type=Path, nargs="*", required=True, help="files to read")
    for name in (*outputs, *timings):
        parser.add_argument(f"--{name}", type=Path, required=True, help="file to write")
    for name in operational:
        parser.add_argument(f"--{name}", type=_number, required=True, help="setting that decides no result")
    for name in measured:
        parser.add_argument(f"--{name}", type=Path, nargs="*", default=[], help="speeds to show, if any")
    if asks_outside:
        parser.add_argument(
            "--service", type=json.loads, required=True, help="who is asked, and how, as JSON"
        )
    values = vars(parser.parse_args())
    if not gc.isenabled():  # as `snapshot` has left it
        gc.freeze()  # what has been loaded stays
        gc.enable()
    several = {f"{name}/{path.as_posix()}": path for name in (*many, *optional) for path in values[name]}
    read = {name: values[name] for name in inputs} | several
    job = Job(
        start=_start(rule, values, {name: values[name] for name in wildcards}, read, outputs, beside),
        inputs=read,
        outputs={name: values[name] for name in outputs},
        timings={name: values[name] for name in timings},
        operational={name: values[name] for name in operational},
        service=values.get("service", {}),
        measured={name: values[name] for name in measured},
    )
    if outputs and not (asks_outside or always_runs):
        _keep(job)
    if _log() is not None:
        atexit.register(write_summary, job, time.monotonic(), time.time())
    return job


def _number(text: str) -> float:
    """A whole number as one, which counts of rows and GPUs are."""
    return int(text) if text.isdecimal() else float(text)


def _parser(rule: str, description: str | None) -> argparse.ArgumentParser:
    """What every job takes: its settings, the meaning of its code, versions of its packages."""
    parser = argparse.ArgumentParser(prog=f"python -m workflow_scripts.jobs.{rule}", description=description)
    parser.add_argument(
        "--config", type=json.loads, required=True, help="slice of the configuration, as JSON"
    )
    parser.add_argument("--code", type=Path, required=True, help="list of the code's meaning (graph.code)")
    parser.add_argument(
        "--packages", type=json.loads, required=True, help="versions of its packages, as JSON"
    )
    return parser


def _start(
    rule: str,
    values: Mapping[str, Any],
    wildcards: Mapping[str, str],
    read: Mapping[str, Path],
    outputs: Sequence[str],
    beside: str,
) -> Record:
    """What is known of the artefacts before any work, once code and packages are found to be those of the plan."""
    meaning = json.loads(values["code"].read_text("utf-8"))
    check_code(meaning)
    _planned.update(meaning)
    check_packages(values["packages"])
    return job_record(
        rule,
        wildcards=wildcards,
        settings=values["config"],
        inputs=read,
        outputs=[values[name] for name in outputs],
        meaning=meaning,
        versions=values["packages"],
        beside=beside,
    )


def _keep(job: Job) -> None:
    """Put back what the same job made at an earlier time and leave, or else keep what this one makes when it ends."""
    files = (job.artefacts, list(job.timings.values()), job.key)
    if kept.holds(*files):
        if _is_first():
            kept.put_back(*files[:2])
            found = f"done before by the same job, put back from {kept.folder_of(job.artefacts)}"
            print(f"{named_in_logs(job)}: {found}; delete that to do it again")  # noqa: T201
        sys.exit()
    if _is_first():
        _keeping.append(partial(kept.keep, *files))
        atexit.register(_keeping[-1])


def leave_unkept() -> None:
    """Have the running job made anew when it is asked for again, whatever its key: a part of it failed."""
    if _keeping:
        atexit.unregister(_keeping[-1])


def _is_first() -> bool:
    """Whether this is the process that writes files, of those that torchrun starts for one job."""
    return os.environ.get("RANK", "0") == "0"


def _log() -> Path | None:
    """The log of the running job; None for a script that is started by hand."""
    log = Path(f"/proc/self/fd/{_STDOUT}").resolve()
    return log if log.suffix == ".log" and log.exists() else None


def _acquire_job_lock() -> None:
    """Hold a lock next to the job's log until this process ends, however it ends.

    A job goes on when Snakemake is killed, and the next run would start a second one at the same time.

    Raises:
        DataError: if another process holds it.
    """
    log = _log()
    if log is None or not _is_first() or str(log) in _held:  # of the job before this one in the same process
        return
    while _held:
        os.close(_held.popitem()[1])
    _held[str(log)] = lock = os.open(f"{log}.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(lock, 200, 0).decode(errors="replace")
        found = f"this job is running already, {holder}, left by a run that was killed or started twice"
        raise DataError(f"{log}.lock: {found}. Wait for it or end it, and run again.") from error
    except OSError:  # a file system without locks
        return
    ours = f"process {os.getpid()} on {socket.gethostname()}".encode()
    os.pwrite(lock, ours, 0)  # before anything is cut off: who looks meanwhile is to find a process
    os.truncate(lock, len(ours))
