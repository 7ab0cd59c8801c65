"""The jobs behind a study: what each wrote, from its records, and how it went, from its log and measurements.

A job's log and the measurements that Snakemake writes when the job succeeds are found in logs/<study>/<rule>/ and
benchmarks/<study>/<rule>/, under the values of its wildcards. A log that is newer than its measurements, or has none,
therefore belongs to a job that failed or was stopped. Of jobs that share a process (``jobs.__main__``), the log of one
names the others. Seeds that were trained side by side have a log each, and measurements in common.
"""

import csv
import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import product
from pathlib import Path

from workflow_scripts.audit.verify import Verifier
from workflow_scripts.provenance.line import apart
from workflow_scripts.provenance.record import Record

_TOLERANCE_SECONDS = 1.0  # file systems differ in the resolution of dates
_NAMED = re.compile(r"^(\w+(?: [^\s:]+)+): ", re.MULTILINE)  # rule and wildcards of a job that speaks


@dataclass
class Job:
    """One job of a study."""

    rule: str
    name: str
    """Path of its log below the rule's folder, without suffix."""
    record: Record | None = None
    """None for a job that failed."""
    outputs: list[str] = field(default_factory=list)
    log: Path | None = None
    shares: bool = False
    """Whether log and measurements are those of another job, in whose process it ran."""
    seconds: float | None = None
    """How long its process ran; None where there is no measurement."""
    beside: int = 1
    """Jobs that ran side by side and were measured together, itself among them."""
    memory_mb: float | None = None
    """Largest resident memory, of all that were measured together."""
    end: datetime | None = None

    @property
    def failed(self) -> bool:
        """Whether it left a log and nothing else."""
        return self.record is None

    @property
    def start(self) -> datetime | None:
        """When it began; None where unknown."""
        return self.end - timedelta(seconds=self.seconds) if self.end and self.seconds is not None else None


class RunArtefacts:
    """The files with one suffix below a folder of logs or measurements, looked up by a job's rule and wildcards."""

    def __init__(self, folder: Path, suffix: str) -> None:
        self.folder = folder
        self.files = {}
        for file in sorted(folder.rglob(f"*{suffix}"), key=lambda file: (_date(file), file)):
            *folders, last = file.relative_to(folder).as_posix().removesuffix(suffix).split("/")
            for name in apart(last):
                rule, *parts = *folders, name
                self.files[rule, frozenset(parts)] = file  # the last, if it ran in other company before

    def of(self, record: Record) -> Path | None:
        """The file of the job that wrote ``record``; its path holds the values of the wildcards in some order."""
        spellings = product(*((value, f"{key}{value}") for key, value in record.wildcards.items()))
        wanted = [self.files.get((record.rule, frozenset(parts))) for parts in spellings]
        if not record.wildcards:
            wanted = [file for (rule, _), file in self.files.items() if rule == record.rule]
        return next((file for file in wanted if file), None)

    def same(self, other: "RunArtefacts", file: Path | None) -> Path | None:
        """The file of the job to which ``file`` of ``other`` belongs."""
        return next((self.files.get(key) for key, one in other.files.items() if one == file), None)

    def naming(self, record: Record) -> Path | None:
        """The log of another job in which the one that wrote ``record`` says what it did."""
        return self._named.get((record.rule, frozenset(record.wildcards.values())))

    @cached_property
    def _named(self) -> dict[tuple[str, frozenset[str]], Path]:
        named: dict[tuple[str, frozenset[str]], Path] = {}
        for file in self.files.values():
            for found in _NAMED.findall(file.read_text("utf-8", errors="replace")):
                rule, *values = found.split()
                named[rule, frozenset(values)] = file
        return named

    def name_of(self, file: Path) -> str:
        """A file's path below its rule's folder, without suffix."""
        return file.relative_to(self.folder).with_suffix("").as_posix().partition("/")[2]


def jobs_of(verifier: Verifier, study: str) -> list[Job]:
    """The finished jobs of ``study``, followed by those that failed."""
    root, name = verifier.inventory.root, Path(study).name
    logs, measured = (
        RunArtefacts(root / "logs" / name, ".log"),
        RunArtefacts(root / "benchmarks" / name, ".tsv"),
    )
    found: dict[tuple[str, ...], Job] = {}
    for artefact, record in verifier.records.items():
        if artefact.startswith(f"{study}/"):
            key = (record.rule, *verifier.outputs[artefact])
            if key not in found:
                found[key] = _finished(record, logs, measured)
            found[key].outputs.append(artefact)
    return [*found.values(), *_failed(logs, measured, {job.log for job in found.values()})]


def _finished(record: Record, logs: RunArtefacts, measured: RunArtefacts) -> Job:
    own = logs.of(record)
    log = own or logs.naming(record)
    name = logs.name_of(own) if own else "/".join(record.wildcards.values()) or record.rule
    job = Job(record.rule, name, record, log=log, shares=log is not own)
    if measurements := measured.of(record) or measured.same(logs, log):
        with measurements.open(newline="") as lines:
            last = list(csv.DictReader(lines, delimiter="\t"))[-1:] or [{}]
        job.beside = len(apart(measurements.stem))
        job.seconds, job.memory_mb = _number(last[0].get("s")), _number(last[0].get("max_rss"))
        job.end = _date(measurements)
    return job


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:  # Snakemake writes - or NA where it could not measure
        return None


def _date(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def _failed(logs: RunArtefacts, measured: RunArtefacts, known: AbstractSet[Path | None]) -> Iterator[Job]:
    for (rule, parts), log in logs.files.items():
        other = measured.files.get((rule, parts))
        younger = other and _date(log) - _date(other) > timedelta(seconds=_TOLERANCE_SECONDS)
        if log not in known and (younger or not other):
            yield Job(rule, logs.name_of(log), log=log, end=_date(log))


def last_words(log: Path, most: int = 300) -> str:
    """The last line of a log, truncated to ``most`` characters: a job's error is one line."""
    lines = log.read_text("utf-8", errors="replace").strip().splitlines()
    return lines[-1][:most] if lines else "the log is empty: killed or still running"
