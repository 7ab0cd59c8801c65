"""A job as its rule hands it over: settings, code, packages, wildcards, files in and out.

The call of a job is JSON (``graph.call`` writes it): ``settings``, the slice of the configuration that it reads;
``packages`` and their versions; and ``files``, which holds ``wildcards``, ``inputs`` and ``outputs`` by role, and
``operational``, how it is to run, which decides no result. An input with one path is a file, one with a list several.
"""

import atexit
import fcntl
import hashlib
import json
import os
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.errors import DataError
from workflow_scripts.provenance import cache
from workflow_scripts.provenance.artefacts import (
    OUTSIDE,
    RECORD_FILE,
    give_record,
    job_record,
    read_table,
    write_table,
)
from workflow_scripts.provenance.job_log import summary
from workflow_scripts.provenance.record import Input, Record, origin_of_this_process
from workflow_scripts.provenance.snapshot import IS_JOB, check_code, check_loaded, check_packages

TIMINGS = ("speed", "times")
"""Roles of outputs that hold speeds: they differ from run to run, so that they are no artefacts."""
ALWAYS_RUN = ("drop_models", "fetch_tasks", "translate_shard", "write_exemplars")
"""Rules of jobs that are never cached: they delete, fetch, or ask services whose answers no key knows."""
ANYWHERE = ("continue_mlm", "train_encoder")
"""Rules whose outputs do not say where they were made: what one study has trained, any other takes."""
_STDOUT = 1


class Job(NamedTuple):
    """What a rule handed to its entry script."""

    start: Record
    """What is known of its artefacts before it begins."""
    inputs: dict[str, Path]
    """By role, or by role and path where a role may have several files."""
    outputs: dict[str, Path]
    operational: dict[str, Any]
    """Settings that decide no result (``config.OPERATIONAL``), and are no part of the key."""
    failed: dict[str, str]
    """Parts of it that failed, and why; where there is one, what it makes is not cached."""

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
    def name(self) -> str:
        """Rule and wildcards, by which a line of a log says whose it is."""
        return " ".join([self.rule, *self.wildcards.values()])

    @property
    def artefacts(self) -> list[Path]:
        """What it writes that carries a record; a model folder stands for its files."""
        return [path for role, path in self._made.items() if role not in TIMINGS]

    @property
    def _made(self) -> dict[str, Path]:
        """Files and model folders that it writes, by their roles."""
        return {
            role: path.parent if path.name == RECORD_FILE else path for role, path in self.outputs.items()
        }

    def restore(self) -> bool:
        """Put in place what an equal job has made before, if it is cached."""
        if self.rule in ALWAYS_RUN or not cache.restore(key := cache_key(self.start), self._made):
            return False
        if self.rule in ANYWHERE:
            for path in self.artefacts:
                give_record(path, self.start)
        print(f"{self.name}: done before, taken from {cache.entry_of(key)}; delete that to do it again")  # noqa: T201
        return True

    def keep(self) -> None:
        """Cache what it has made, all of it."""
        if self.rule not in ALWAYS_RUN and not self.failed:
            cache.put(cache_key(self.start), self._made)

    def record(
        self, *, foreign: Mapping[str, Input] | None = None, labels: Sequence[str | None] = ()
    ) -> Record:
        """The record of every artefact this job writes.

        Args:
            foreign: Role to a source from outside the pipeline (a package's file, a Hub revision).
            labels: Substitutions made by this job itself, None or empty where there is none; those of its inputs are
                inherited.
        """
        if IS_JOB:  # a process of its own, which has loaded what it needs and nothing else
            check_loaded(self.start.meaning)
        more = {
            "inputs": self.start.inputs | dict(foreign or {}),
            "labels": sorted({*self.start.labels, *filter(None, labels)}),
            "origin": origin_of_this_process(),
        }
        return self.start.model_copy(update=more)

    def read(self, role: str, columns: Any, names: list[str] | None = None) -> Any:
        """The table of an input, checked (``artefacts.read_table``): all of its columns, or some."""
        return read_table(self.inputs[role], columns, names)

    def write(
        self,
        tables: Mapping[str, Any],
        *,
        foreign: Mapping[str, Input] | None = None,
        labels: Sequence[str | None] = (),
    ) -> None:
        """Write tables by the roles of their outputs, all with the one record of this job."""
        record = self.record(foreign=foreign, labels=labels)
        for role, table in tables.items():
            write_table(self.outputs[role], table, record)

    def many(self, role: str) -> list[Path]:
        """The files of an input that may be several, in the order in which the rule names them."""
        return [path for name, path in self.inputs.items() if name.partition("/")[0] == role]


def by_name(roles: Mapping[str, str | Sequence[str]]) -> dict[str, Path]:
    """The files of a call's roles, each by its role, or by role and path where the role has a list of them."""
    named: dict[str, Path] = {}
    for role, paths in roles.items():
        several = {f"{role}/{path}": Path(path) for path in paths}
        named |= {role: Path(paths)} if isinstance(paths, str) else several
    return named


def begin(rule: str, call: Mapping[str, Any]) -> Job:
    """The job of a call, about to do its work.

    Raises:
        DataError: if this very job is running already, an input is missing, damaged or made for another place,
            or code or packages differ from those the job was planned with.
    """
    _acquire_job_lock()
    files = call["files"]
    inputs, outputs = by_name(files["inputs"]), by_name(files["outputs"])
    meaning = json.loads(inputs.pop("code").read_text("utf-8"))
    check_code(meaning)
    check_packages(call["packages"])
    start = job_record(
        rule,
        wildcards=files["wildcards"],
        settings=call["settings"],
        inputs=inputs,
        outputs=[path for role, path in outputs.items() if role not in TIMINGS],
        meaning=meaning,
        versions=call["packages"],
    )
    job = Job(start, inputs, outputs, files["operational"], {})
    if _log() is not None:
        atexit.register(_print_summary, job, time.monotonic(), time.time())
    return job


def _print_summary(job: Job, began: float, began_at: float) -> None:
    took = time.monotonic() - began
    for line in summary(job.name, job.inputs, job.outputs, seconds=took, began_at=began_at):
        print(line, flush=True)  # noqa: T201


def cache_key(record: Record) -> str:
    """The key of what a job makes: of a training that of what it reads, wherever it lies; else also of all places."""
    inside = [(role, one) for role, one in record.inputs.items() if not one.path.startswith(OUTSIDE)]
    read = {f"{role.partition('/')[0]}/{number}": one.sha256 for number, (role, one) in enumerate(inside)}
    places = [] if record.rule in ANYWHERE else [record.outputs, [one.path for _, one in inside]]
    return hashlib.sha256(json.dumps([record.key_with(read), *places]).encode()).hexdigest()


def _log() -> Path | None:
    """The log of the running job; None for one that is started by hand."""
    log = Path(f"/proc/self/fd/{_STDOUT}").resolve()
    return log if log.suffix == ".log" and log.exists() else None


def _acquire_job_lock() -> None:
    """Hold a lock next to the job's log until this process ends, however it ends.

    A job goes on when Snakemake is killed, and the next run would start a second one at the same time.

    Raises:
        DataError: if another process holds it.
    """
    log = _log()
    if log is None or os.environ.get("RANK", "0") != "0":  # which torchrun gives the processes of one job
        return
    lock = os.open(f"{log}.lock", os.O_RDWR | os.O_CREAT, 0o644)  # left open, so that the kernel keeps it
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
