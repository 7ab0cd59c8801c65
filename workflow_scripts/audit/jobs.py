"""The finished jobs of a study: what each wrote, from its records, and what it took, from Snakemake's measurements.

These are in benchmarks/<study>/<rule>/, under the values of the job's wildcards.
"""

import csv
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from workflow_scripts.audit.verify import Verifier
from workflow_scripts.provenance.record import Record

_COLUMNS = {"s": "seconds", "cpu_time": "processor_seconds", "max_rss": "memory_mb"}
"""Those of Snakemake's files that are read: real time, that of processors, largest resident memory."""


class Job(NamedTuple):
    """One finished job of a study."""

    record: Record
    outputs: list[str]
    measured: Mapping[str, float]
    """Of its last run, by the names of ``_COLUMNS``; what could not be measured is not in it."""
    end: datetime | None


Files = Mapping[tuple[str, frozenset[str]], Path]
"""Measurements by rule and values of wildcards, whatever their order."""


def jobs_of(verifier: Verifier, study: str) -> list[Job]:
    """The finished jobs of ``study``."""
    folder = Path("benchmarks", Path(study).name)
    named = ((file, file.relative_to(folder).with_suffix("").parts) for file in folder.rglob("*.tsv"))
    files = {(rule, frozenset(parts)): file for file, (rule, *parts) in named}
    found: dict[tuple[str, ...], Job] = {}
    for artefact, record in verifier.records.items():
        if artefact.startswith(f"{study}/"):
            job = found.setdefault((record.rule, *record.outputs), _job(record, files))
            job.outputs.append(artefact)
    return list(found.values())


def _job(record: Record, files: Files) -> Job:
    parts = {f"seed{value}" if key == "seed" else value for key, value in record.wildcards.items()}
    of_rule = (file for (rule, _), file in files.items() if rule == record.rule)
    file = files.get((record.rule, frozenset(parts))) if parts else next(of_rule, None)
    if file is None:
        return Job(record, [], {}, None)
    return Job(record, [], measurements(file), datetime.fromtimestamp(file.stat().st_mtime, UTC))


def measurements(file: Path) -> dict[str, float]:
    """What Snakemake measured in a job's last run; it writes - or NA where it could not."""
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    last = rows[-1] if rows else {}
    return {name: float(last[column]) for column, name in _COLUMNS.items() if _is_number(last.get(column))}


def _is_number(text: str | None) -> bool:
    return (text or "").replace(".", "", 1).isdigit()
