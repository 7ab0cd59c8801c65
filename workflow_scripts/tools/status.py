"""What a study is doing: jobs that are done, running, queued, failed and to come, and how long the rest may take.

Counted from what Snakemake would run now, the jobs' logs and, where there is one, SLURM's queue. Of a running job it
shows the last line of its log (of a training step, loss and best development score), of a failed one the line that says
why. The configuration is that of the study's last run in this folder, or what --configfile names. Exit code 1 if a job
has failed. To look again every ten seconds: watch -n 10 python -m workflow_scripts status.

  python -m workflow_scripts status demo
"""

import re
import shutil
import socket
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from workflow_scripts.audit.cost import measurements
from workflow_scripts.audit.printing import Answer, Row, Rows, argument
from workflow_scripts.errors import ConfigError, advice
from workflow_scripts.graph.configuration import load_config
from workflow_scripts.graph.failures import lines_of, why
from workflow_scripts.graph.place import STUDIES, Call, last_call
from workflow_scripts.graph.queue import Queued, queued_here, target_of
from workflow_scripts.planning.graph import TARGETS, PlannedJob, planned
from workflow_scripts.provenance.closure import ROOT

SILENT_SECONDS = 15 * 60
"""A job on another machine whose log was not written for so long counts as ended."""
_OF_SLURM = Path("logs/slurm")
"""As slurm/config.yaml says: a folder for each rule, one below it for each job's wildcards."""
STATES = ("done", "running", "queued", "failed", "to come")


class Seen(NamedTuple):
    """One job that is not done."""

    job: PlannedJob
    state: str
    said: str
    """What it says of itself, or why it ended; empty where it has not begun."""


def look(jobs: Iterable[PlannedJob], queue: Iterable[Queued] = ()) -> list[Seen]:
    """Sort jobs that are left to do by what their files and SLURM's queue say."""
    queued = {target: one for one in queue for target in one.targets}
    return [
        Seen(job, *_state(job, queued.get(target_of(job.rule, job.wildcards)))) for job in jobs if job.log
    ]


def _state(job: PlannedJob, queued: Queued | None) -> tuple[str, str]:
    if is_running(job):
        return "running", lines_of(Path(job.log))[-1]
    if queued is not None:
        again = f", try {queued.attempt}" if queued.attempt > 1 else ""
        return "queued", f"SLURM job {queued.number} is {queued.state.lower()}{again}"
    ended_well = _changed(Path(job.times))  # Snakemake writes that file only then
    if _changed(Path(job.log)) > ended_well:
        return "failed", why([Path(job.log), *_last_try(job)])
    return "to come", ""


def is_running(job: PlannedJob) -> bool:
    """Whether the process that holds a job's lock lives; of another machine's, whether its log was written lately."""
    try:
        lock = Path(f"{job.log}.lock").read_text(errors="replace")
        held = re.fullmatch(r"process (\d+) on (\S+)", lock)
        if held and held[2] == socket.gethostname():
            return b"workflow_scripts.jobs" in Path("/proc", held[1], "cmdline").read_bytes()
    except OSError:
        return False
    return bool(held) and time.time() - _changed(Path(job.log)) < SILENT_SECONDS


def _changed(path: Path) -> float:
    """The date of a file; 0 where there is none."""
    return path.stat().st_mtime if path.is_file() else 0.0


def duration(seconds: float) -> str:
    """Seconds as a person says them."""
    minutes = seconds / 60
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def _last_try(job: PlannedJob) -> list[Path]:
    """SLURM's log of a job's last try, if there is one."""
    folder = _OF_SLURM / f"rule_{job.rule}" / "_".join(job.wildcards.values()).replace("/", "_")
    return sorted(folder.glob("*.log"), key=_changed)[-1:]


# The verb


def counted(study: str, seen: Sequence[Seen]) -> tuple[list[Row], str]:
    """Jobs by rule and state, and how long those that are not done may take, by the times of those that are."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    seconds: dict[str, list[float]] = defaultdict(list)
    unfinished = {Path(one.job.times) for one in seen}
    for file in Path("benchmarks", study).rglob("*.tsv"):
        rule = file.parts[2]
        seconds[rule].append(measurements(file).get("seconds", 0.0))
        counts[rule]["done"] += file not in unfinished
    for one in seen:
        counts[one.job.rule][one.state] += 1
    known = [fmean(seconds[one.job.rule]) for one in seen if one.job.rule in seconds]
    new = f"{len(seen) - len(known)} jobs of kinds that have not run yet" * (len(known) < len(seen))
    left = f"about {duration(sum(known))} of work left, one job after the other" * bool(known)
    rows: list[Row] = [
        {"rule": rule, **{state: found[state] or None for state in STATES}}
        for rule, found in sorted(counts.items())
    ]
    return rows, ", and ".join(filter(None, (left, new)))


def configuration_of(study: str | None, configfiles: Sequence[str]) -> tuple[str, Call]:
    """A study and its configuration: as given, as its last run here had it, or the file of its name.

    Raises:
        ConfigError: if nothing tells, or it is another study's.
    """
    ran = [note.stem for note in sorted(STUDIES.glob("*.json"), key=_changed)]
    if not (study or configfiles or ran):
        raise ConfigError("status: no study was run in this folder. Name one, or its --configfile.")
    asked = Call(list(configfiles), {}) if configfiles else last_call(study or ran[-1])
    if asked is None:
        overlay = ROOT / f"config/{study}.yaml"
        asked = Call([str(overlay)] if overlay.exists() else [], {})
    name = load_config(ROOT, asked.configfiles, asked.config)["name"]
    if study not in (None, name):
        if asked.configfiles:
            read = f"{', '.join(asked.configfiles)} is the configuration of {name}"
        else:
            read = f"it was not run here, and there is no config/{study}.yaml"
        found = f"{study}: {read}. Give this study's by --configfile."
        raise ConfigError(f"{found} {advice(str(study), ran)}")
    return name, asked


def in_queue() -> tuple[list[Queued], str]:
    """What SLURM has of this folder, and why that is not known; neither where there is no SLURM."""
    try:
        return (queued_here() if shutil.which("squeue") else []), ""
    except ConfigError as error:
        return [], f"What waits in a queue is not shown. {error}"


ARGUMENTS = (
    argument(
        "study", nargs="?", metavar="STUDY", help="its name or folder; default: the one that ran last here"
    ),
    TARGETS,
    argument(
        "--configfile", nargs="+", default=[], metavar="FILE", help="default: those of its last run here"
    ),
)


def answer(study: str | None, targets: list[str], configfile: list[str]) -> Answer:
    """What is known of every job, and in detail of those that run, wait or have failed."""
    name, asked = configuration_of(study and Path(study).name, configfile)
    jobs = planned(targets, asked.configfiles, config=asked.config, from_nothing=False).jobs
    queue, unknown = in_queue()
    seen = look(jobs, queue)
    rows, left = counted(name, seen)
    listed = [
        f"{one.state} {' '.join([one.job.rule, *one.job.wildcards.values()])}: {one.said} ({one.job.log})"
        for one in sorted(seen, key=lambda one: STATES.index(one.state))
        if one.said
    ]
    states = Counter(one.state for one in seen)
    total = {"done": sum(row["done"] or 0 for row in rows)} | states
    said = f"{name}: " + ", ".join(f"{total[state]:,} {state}" for state in STATES if total.get(state))
    lines = filter(None, [left, unknown])
    return Answer(said, not states["failed"], [Rows("jobs", rows), *listed, *lines], {"listed": listed})
