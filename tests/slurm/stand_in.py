"""Stands in for Python where jobs of the paper scale run: each is done in milliseconds, by well-formed placeholders.

A queued job costs two Snakemakes and a PyTorch, a minute of two cores for what a rehearsal asks of the driver and of
SLURM. So the driver's Python is a script that hands its arguments to one server. That has planned the study, and writes
what the job would write: tables, pages and folders with their records and checksums, its log and its times; then it
takes away Snakemake's mark of an unfinished job, as the job's own Snakemake does.
"""

import json
import socketserver
import sys
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from threading import Lock

import pyarrow as pa

from workflow_scripts.planning.graph import Graph, PlannedJob, planned
from workflow_scripts.provenance.artefacts import (
    RECORD_FILE,
    job_record,
    write_page,
    write_table,
    writing_model_folder,
)
from workflow_scripts.provenance.job import TIMINGS, by_name
from workflow_scripts.provenance.record import Record

CLIENT = """\
#!{python} -IS
import json, os, socket, sys, time
while os.path.exists({hold!r}):
    time.sleep(0.2)
while not os.path.exists({socket!r}):
    time.sleep(1)
server = socket.socket(socket.AF_UNIX)
server.connect({socket!r})
call = sys.stdin.read() if "workflow_scripts.jobs" in sys.argv else ""
server.sendall(json.dumps([sys.argv[1:], call]).encode() + b"\\n")
answer = server.makefile().read()
sys.exit(answer or None)
"""
DRIVER = """\
#!{python}
import sys
sys.executable = {stand_in!r}
from snakemake.cli import main
sys.exit(main())
"""
PLACEHOLDER = pa.table({"placeholder": [0.0]})
TIMES = "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time\n" + "\t".join(
    ["0.01", "0:00:00", *["1.00"] * 8]
)
MARKS = Path(".snakemake/incomplete")


def install(folder: Path, python: str) -> Path:
    """Write ``bin`` with ``python`` and ``snakemake``, which are to stand first on the PATH; returns it."""
    scripts = folder / "bin"
    scripts.mkdir()
    places = {"python": python, "socket": str(folder / "socket"), "hold": str(folder / "hold")}
    for name, text in (("python", CLIENT), ("snakemake", DRIVER)):
        script = scripts / name
        script.write_text(text.format(**places, stand_in=str(scripts / "python")))
        script.chmod(0o755)
    return scripts


def targets(words: list[str]) -> list[tuple[str, dict[str, str]]]:
    """Rules and wildcards of a job's Snakemake: what follows --target-jobs."""
    after = words[words.index("--target-jobs") + 1 :]
    named = []
    for word in after:
        if word.startswith("--"):
            break
        rule, _, wildcards = word.partition(":")
        named.append((rule, dict(pair.split("=", 1) for pair in wildcards.split(",") if pair)))
    return named


def make(job: PlannedJob, *, queued: bool) -> None:
    """Write all outputs of a job; of a queued one what its Snakemake writes as well."""
    outputs = json.loads(job.call)["files"]["outputs"]
    record = job_record(
        job.rule,
        settings=job.settings,
        inputs=by_name(job.roles),
        outputs=[Path(path) for role, path in outputs.items() if role not in TIMINGS],
        wildcards=job.wildcards,
        meaning=job.meaning,
        versions=job.packages,
    )
    for role, path in outputs.items():
        alone = record.model_copy(update={"outputs": [path]})  # as jobs write times
        _write(Path(path), job, alone if role in TIMINGS else record)
    if queued:
        for name, text in ((job.log, "done\n"), (job.times, TIMES)):
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(text)
        for name in job.outputs:
            _mark_of(name).unlink(missing_ok=True)


def _write(path: Path, job: PlannedJob, record: Record) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.name == RECORD_FILE:
        with writing_model_folder(path.parent, record) as folder:
            for name in job.outputs:
                if Path(name).is_relative_to(path.parent) and name != str(path):
                    inside = folder / Path(name).relative_to(path.parent)
                    inside.write_text(name)
    elif path.suffix == ".parquet":
        write_table(path, PLACEHOLDER, record)
    else:
        write_page(path, job.rule, record)


def _mark_of(name: str) -> Path:
    """Where Snakemake notes that a file is being made: a long name in pieces."""
    text = urlsafe_b64encode(name.encode()).decode()
    pieces = [text[start : start + 254] for start in range(0, len(text), 254)]
    return MARKS.joinpath(*(f"@{piece}" for piece in pieces[:-1]), pieces[-1])


class Server(socketserver.ThreadingUnixStreamServer):
    """Does the jobs of a study, one at a time."""

    request_queue_size = 128
    daemon_threads = True

    def __init__(self, place: str, graph: Graph) -> None:
        super().__init__(place, Handler)
        self._lock = Lock()
        self._jobs = {self._name(job.rule, job.wildcards): job for job in graph.jobs}

    @staticmethod
    def _name(rule: str, wildcards: Mapping[str, str]) -> str:
        return json.dumps([rule, sorted(wildcards.items())])

    def work(self, words: list[str], call: str) -> None:
        """Do the jobs of a call of Python: one of a rule's command, or those of a Snakemake in the queue."""
        with self._lock:
            if call:
                wildcards = json.loads(call)["files"]["wildcards"]
                make(self._jobs[self._name(words[-1], wildcards)], queued=False)
            else:
                for rule, wildcards in targets(words):
                    make(self._jobs[self._name(rule, wildcards)], queued=True)


class Handler(socketserver.StreamRequestHandler):
    """A call of the stand-in; the answer is empty, or what went wrong."""

    server: Server

    def handle(self) -> None:
        """Work, and say how it went."""
        words, call = json.loads(self.rfile.readline())
        try:
            self.server.work(words, call)
        except Exception as error:
            self.wfile.write(f"{type(error).__name__}: {error}".encode())


def main(socket: str, *wanted: str) -> None:
    """Plan the study in this folder, as far as it makes what is wanted, and serve."""
    with Server(socket, planned(wanted, [], profile="slurm")) as server:
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
