"""The jobs behind a study: what each wrote, from its records, and how it went, from its log and measurements.

A job's log and the measurements that Snakemake writes when the job succeeds are found in logs/<study>/<rule>/ and
benchmarks/<study>/<rule>/, under the values of its wildcards. A log that is newer than its measurements, or has none,
therefore belongs to a job that failed or was stopped.
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

from workflow_scripts.audit.verify import Verifier
from workflow_scripts.provenance.record import Record

_TOLERANCE_SECONDS = 1.0  # file systems differ in the resolution of dates
_COLUMNS = {"s": "seconds", "cpu_time": "processor_seconds", "max_rss": "memory_mb"}
"""Those of Snakemake's files that are read: real time, that of processors, largest resident memory."""


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
    measured: Mapping[str, float] = field(default_factory=dict)
    """Of its last run, by the names of ``_COLUMNS``; what could not be measured is not in it."""
    end: datetime | None = None

    @property
    def failed(self) -> bool:
        """Whether it left a log and nothing else."""
        return self.record is None

    @property
    def start(self) -> datetime | None:
        """When it began; None where unknown."""
        seconds = self.measured.get("seconds")
        return self.end - timedelta(seconds=seconds) if self.end and seconds is not None else None


Files = Mapping[tuple[str, frozenset[str]], Path]
"""Logs or measurements by rule and values of wildcards, whatever their order."""


def jobs_of(verifier: Verifier, study: str) -> list[Job]:
    """The finished jobs of ``study``, followed by those that failed."""
    logs, measured = (
        _files(verifier.inventory.root / top / Path(study).name, suffix)
        for top, suffix in (("logs", ".log"), ("benchmarks", ".tsv"))
    )
    found: dict[tuple[str, ...], Job] = {}
    for artefact, record in verifier.records.items():
        if artefact.startswith(f"{study}/"):
            key = (record.rule, *verifier.outputs[artefact])
            if key not in found:
                found[key] = _finished(record, logs, measured)
            found[key].outputs.append(artefact)
    return [*found.values(), *_failed(logs, measured, {job.log for job in found.values()})]


def measurements(file: Path) -> dict[str, float]:
    """What Snakemake measured in a job's last run; it writes - or NA where it could not."""
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    last = rows[-1] if rows else {}
    return {name: float(last[column]) for column, name in _COLUMNS.items() if _is_number(last.get(column))}


def _is_number(text: str | None) -> bool:
    return (text or "").replace(".", "", 1).isdigit()


def _files(folder: Path, suffix: str) -> Files:
    named = (
        (file, file.relative_to(folder).with_suffix("").parts) for file in sorted(folder.rglob(f"*{suffix}"))
    )
    return {(rule, frozenset(parts)): file for file, (rule, *parts) in named}


def _file_of(record: Record, files: Files) -> Path | None:
    spellings = product(*((value, f"{key}{value}") for key, value in record.wildcards.items()))
    found = [files.get((record.rule, frozenset(parts))) for parts in spellings]
    if not record.wildcards:
        found = [file for (rule, _), file in files.items() if rule == record.rule]
    return next((file for file in found if file), None)


def _finished(record: Record, logs: Files, measured: Files) -> Job:
    log, file = _file_of(record, logs), _file_of(record, measured)
    name = _name(log) if log else "/".join(record.wildcards.values()) or record.rule
    job = Job(record.rule, name, record, log=log)
    if file is not None:
        job.measured, job.end = measurements(file), _date(file)
    return job


def _name(log: Path) -> str:
    """A log's path below its rule's folder, without suffix."""
    return "/".join(log.with_suffix("").parts[log.parts.index("logs") + 3 :])


def _date(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def _failed(logs: Files, measured: Files, known: set[Path | None]) -> Iterator[Job]:
    for (rule, parts), log in logs.items():
        other = measured.get((rule, parts))
        younger = other and _date(log) - _date(other) > timedelta(seconds=_TOLERANCE_SECONDS)
        if log not in known and (younger or not other):
            yield Job(rule, _name(log), log=log, end=_date(log))


def last_words(log: Path, most: int = 300) -> str:
    """The last line of a log, truncated to ``most`` characters: a job's error is one line."""
    lines = log.read_text("utf-8", errors="replace").strip().splitlines()
    return lines[-1][:most] if lines else "the log is empty: killed or still running"
