"""The command line that all entry scripts share: a slice of the configuration, wildcards, files in and out."""

import argparse
import fcntl
import json
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.artefacts import job_record
from workflow_scripts.errors import DataError
from workflow_scripts.provenance import Input, Record

_STDOUT = 1
_held: list[int] = []
"""The lock of the running job: open, so that the kernel keeps it, as long as the process lives."""


class Job(NamedTuple):
    """What a rule handed to its entry script."""

    rule: str
    settings: dict[str, Any]
    wildcards: dict[str, str]
    inputs: dict[str, Path]
    outputs: dict[str, Path]
    timings: dict[str, Path]

    def record(
        self,
        *,
        modules: Sequence[str] = (),
        foreign: Mapping[str, Input] | None = None,
        labels: Sequence[str] = (),
    ) -> Record:
        """The record of every artefact this job writes; arguments as in ``artefacts.job_record``."""
        return job_record(
            self.rule,
            settings=self.settings,
            inputs=self.inputs,
            outputs=self.outputs.values(),
            wildcards=self.wildcards,
            modules=modules,
            foreign=foreign,
            labels=labels,
        )

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
) -> Job:
    """Read the command line of the entry script of ``rule``; ``--help`` lists its arguments.

    Args:
        rule: Name of the rule and of its entry script.
        description: The entry script's docstring.
        wildcards: Wildcards of the rule, each an argument.
        inputs: Roles of single input files.
        many: Roles that take any number of files.
        optional: Such roles that only some jobs of the rule have; they may be left out.
        outputs: Roles of the artefacts it writes.
        timings: Roles of files that hold speeds; they differ from run to run, so they are no artefacts.

    Raises:
        DataError: if this very job is running already.
    """
    _be_alone()
    parser = argparse.ArgumentParser(prog=f"python -m workflow_scripts.{rule}", description=description)
    parser.add_argument(
        "--config", type=json.loads, required=True, help="slice of the configuration, as JSON"
    )
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
    values = vars(parser.parse_args())
    several = {f"{name}/{path.as_posix()}": path for name in (*many, *optional) for path in values[name]}
    return Job(
        rule=rule,
        settings=values["config"],
        wildcards={name: values[name] for name in wildcards},
        inputs={name: values[name] for name in inputs} | several,
        outputs={name: values[name] for name in outputs},
        timings={name: values[name] for name in timings},
    )


def _be_alone() -> None:
    """Hold a lock beside the job's log until this process ends, however it ends.

    A job goes on when Snakemake is killed, and the next run would start a second one beside it.

    Raises:
        DataError: if another process holds it.
    """
    log = Path(f"/proc/self/fd/{_STDOUT}").resolve()
    if log.suffix != ".log" or not log.exists():
        return  # started by hand
    while _held:
        os.close(_held.pop())
    lock = os.open(f"{log}.lock", os.O_RDWR | os.O_CREAT, 0o644)
    _held.append(lock)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(lock, 200, 0).decode(errors="replace")
        found = f"this job is running already, {holder}, left by a run that was killed or started twice"
        raise DataError(f"{log}.lock: {found}. Wait for it or end it, and run again.") from error
    except OSError:  # a file system without locks
        return
    os.truncate(lock, 0)
    os.pwrite(lock, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
