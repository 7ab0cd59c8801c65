"""What jobs took, by rule and run: seconds, memory, requests, tokens and dollars, of a study or of one file's ancestry.

Seconds and memory are Snakemake's measurements (benchmarks/<study>/) of each job's last run; what was cached took
seconds. Requests, tokens and dollars come from the usage tables that jobs with a
language model write. An unknown number is never counted as 0: jobs without one are counted.

  python -m workflow_scripts cost results/demo
"""

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from workflow_scripts.audit.printing import Answer, Row, Rows, argument, without_empty
from workflow_scripts.audit.records import Records, artefact_of, name_of, studies_of, study_folder
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.record import Record

_USAGE = {"model", "calls", "prompt_tokens", "completion_tokens", "cost_usd"}
"""Columns by which a usage table is recognised."""


_COLUMNS = {"s": "seconds", "cpu_time": "processor_seconds", "max_rss": "memory_mb"}
"""Those of Snakemake's files that are read: real time, that of processors, largest resident memory."""


class FinishedJob(NamedTuple):
    """One finished job of a study."""

    record: Record
    outputs: list[str]
    measured: Mapping[str, float]
    """Of its last run, by the names of ``_COLUMNS``; what could not be measured is not in it."""
    end: datetime | None


Files = Mapping[tuple[str, frozenset[str]], Path]
"""Measurements by rule and values of wildcards, whatever their order."""


def jobs_of(records: Records, study: str) -> list[FinishedJob]:
    """The finished jobs of ``study``."""
    folder = Path("benchmarks", Path(study).name)
    named = ((file, file.relative_to(folder).with_suffix("").parts) for file in folder.rglob("*.tsv"))
    files = {(rule, frozenset(parts)): file for file, (rule, *parts) in named}
    found: dict[tuple[str, ...], FinishedJob] = {}
    for artefact, record in records.by_file.items():
        if artefact.startswith(f"{study}/"):
            job = found.setdefault((record.rule, *record.outputs), _job(record, files))
            job.outputs.append(artefact)
    return list(found.values())


def _job(record: Record, files: Files) -> FinishedJob:
    parts = {f"seed{value}" if key == "seed" else value for key, value in record.wildcards.items()}
    of_rule = (file for (rule, _), file in files.items() if rule == record.rule)
    file = files.get((record.rule, frozenset(parts))) if parts else next(of_rule, None)
    if file is None:
        return FinishedJob(record, [], {}, None)
    return FinishedJob(record, [], measurements(file), datetime.fromtimestamp(file.stat().st_mtime, UTC))


def measurements(file: Path) -> dict[str, float]:
    """What Snakemake measured in a job's last run; it writes - or NA where it could not."""
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    last = rows[-1] if rows else {}
    return {name: float(last[column]) for column, name in _COLUMNS.items() if _is_number(last.get(column))}


def _is_number(text: str | None) -> bool:
    return (text or "").replace(".", "", 1).isdigit()


def finished_jobs(path: Path | None) -> list[FinishedJob]:
    """The finished jobs of all studies, of one, or of those behind one artefact.

    Raises:
        DataError: if ``path`` is neither a study nor an artefact.
    """
    is_study = path is None or path.parent == Path("results")
    records = Records(studies_of([path] if path and is_study else []), hashing=False)
    jobs = [job for study in records.folders for job in jobs_of(records, study)]
    if is_study or path is None:
        return jobs
    name = artefact_of(name_of(path))
    if name not in records.by_file:
        raise DataError(f"{name}: not an artefact. Name a file or model folder below results/.")
    behind = records.behind(name)
    return [job for job in jobs if behind & {*job.outputs}]


def row_of(jobs: Iterable[FinishedJob]) -> dict[str, Any]:
    """What some jobs took together; memory is the most that one took."""
    jobs = list(jobs)
    seconds, memory = _measured(jobs, "seconds"), _measured(jobs, "memory_mb")
    usage = [row for job in jobs for output in job.outputs for row in _usage(Path(output))]
    tokens = [row[key] for row in usage for key in ("prompt_tokens", "completion_tokens")]
    dollars = [row["cost_usd"] for row in usage]
    return {
        "jobs": len(jobs),
        "seconds": sum(seconds),
        "of processors": sum(_measured(jobs, "processor_seconds")),
        "memory, MB": max(memory, default=None),
        "not measured": len(jobs) - len(seconds) or None,
        "requests": sum(row["calls"] for row in usage) or None,
        "tokens": sum(tokens) if usage and None not in tokens else None,
        "USD": sum(dollars) if usage and None not in dollars else None,
    }


def _measured(jobs: Iterable[FinishedJob], name: str) -> list[float]:
    return [job.measured[name] for job in jobs if name in job.measured]


def _usage(path: Path) -> list[Row]:
    if path.suffix != ".parquet" or not set(pq.read_schema(path).names) >= _USAGE:
        return []
    rows: list[Row] = pq.read_table(path, columns=sorted(_USAGE)).to_pylist()
    return rows


def grouped(jobs: Iterable[FinishedJob], heading: str) -> list[Row]:
    """A row for each rule, or of trainings for each run, the longest first."""
    groups: dict[str, list[FinishedJob]] = defaultdict(list)
    for job in jobs:
        groups[job.record.rule if heading == "rule" else job.record.wildcards[heading]].append(job)
    rows = [{heading: name} | row_of(found) for name, found in groups.items()]
    return sorted(rows, key=lambda row: -row["seconds"])


ARGUMENTS = (
    argument("path", type=study_folder, nargs="?", help="results/<study>, or a file: the jobs behind it"),
)


def answer(path: Path | None) -> Answer:
    """Costs by rule and of trainings by run."""
    jobs = finished_jobs(path)
    trainings = [job for job in jobs if job.record.rule == "train_encoder"]
    columns = ("run", "jobs", "seconds", "of processors")
    by_run = [{name: row[name] for name in columns} for row in grouped(trainings, "run")]
    total = row_of(jobs)
    return Answer(
        f"{len(jobs)} jobs: {total['seconds'] / 3600:.2f} hours, {total['of processors'] / 3600:.2f} of processors",
        parts=[Rows("by rule", without_empty(grouped(jobs, "rule"))), Rows("trainings by run", by_run)],
        data={"in_all": total},
    )
