"""Print what jobs cost: seconds, memory, requests, tokens and dollars, for a study or for one artefact's ancestry.

Seconds and memory are Snakemake's measurements (benchmarks/<study>/) of each job's last run; of jobs that share a
process, all seconds count for the one that it is named after, and seeds that were trained side by side share theirs
evenly. Requests, tokens and dollars come from the usage tables that jobs with a language model write. An unknown number
is shown as unknown and never counted as 0; exit code 1 if a finished job has no measurement.
"""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow.parquet as pq
from rich.console import Console

from workflow_scripts.audit.jobs import Job, jobs_of
from workflow_scripts.audit.lookup import artefact_at, name_of
from workflow_scripts.audit.printing import console, print_json, table
from workflow_scripts.audit.verify import Verifier, studies_of, unchecked
from workflow_scripts.errors import DataError

T = TypeVar("T", int, float)
_USAGE = {"model", "calls", "prompt_tokens", "completion_tokens", "cost_usd"}
"""Columns by which a usage table is recognised."""


class Cost(NamedTuple):
    """What one job cost, or several in total; None where unknown."""

    job: str
    jobs: int
    seconds: float | None
    memory_mb: float | None
    calls: int
    tokens: int | None
    cost_usd: float | None

    @property
    def unmeasured(self) -> bool:
        """Whether some job left no measurement."""
        return self.seconds is None


def costs(root: Path, studies: Iterable[Path], path: Path | None = None) -> list[Cost]:
    """The cost of every job below ``studies``, or of those behind ``path`` only.

    Raises:
        DataError: if ``path`` is not an artefact.
    """
    verifier = unchecked(root, studies)
    jobs = [job for study in verifier.studies for job in jobs_of(verifier, study) if not job.failed]
    if path is not None:
        name = artefact_at(name_of(path, root), root)
        if name not in verifier.records:
            raise DataError(f"{name}: not an artefact. Name a file or model folder below results/.")
        behind = verifier.behind(name)
        jobs = [job for job in jobs if behind & {*job.outputs}]
    return [_cost(job, verifier) for job in jobs]


def _cost(job: Job, verifier: Verifier) -> Cost:
    rows = [row for output in job.outputs for row in _usage(verifier.inventory.root / output)]
    counted = [row[key] for row in rows for key in ("prompt_tokens", "completion_tokens")]
    return Cost(
        job=f"{job.rule}/{job.name}",
        jobs=1,
        seconds=None if job.seconds is None else 0.0 if job.shares else job.seconds / job.beside,
        memory_mb=job.memory_mb,
        calls=sum(row["calls"] for row in rows),
        tokens=_sum([0, *counted]),
        cost_usd=_sum([0.0, *(row["cost_usd"] for row in rows)]),
    )


def _usage(path: Path) -> list[dict[str, Any]]:
    if path.suffix != ".parquet" or not set(pq.read_schema(path).names) >= _USAGE:
        return []
    rows: list[dict[str, Any]] = pq.read_table(path, columns=sorted(_USAGE)).to_pylist()
    return rows


def _sum(numbers: list[T | None]) -> T | None:
    known = [number for number in numbers if number is not None]
    return sum(known[1:], known[0]) if known and len(known) == len(numbers) else None


def in_all(found: Iterable[Cost]) -> Cost:
    """The total; for memory, the maximum."""
    found = list(found)
    return Cost(
        job="in all",
        jobs=len(found),
        seconds=_sum([cost.seconds for cost in found]),
        memory_mb=max((cost.memory_mb for cost in found if cost.memory_mb is not None), default=None),
        calls=sum(cost.calls for cost in found),
        tokens=_sum([cost.tokens for cost in found]),
        cost_usd=_sum([cost.cost_usd for cost in found]),
    )


# The command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what ``audit cost`` takes."""
    parser.add_argument(
        "path", type=Path, nargs="?", help="artefact: count the jobs behind it; default: all jobs"
    )


def run(args: argparse.Namespace) -> int:
    """Print costs; exit code 1 if a finished job has no measurement."""
    found = costs(args.root, studies_of(args.root, []), args.path)
    total = in_all(found)
    if args.json:
        print_json({"jobs": [cost._asdict() for cost in found], "in_all": total._asdict()})
    else:
        show(found, total, console())
    return 1 if total.unmeasured else 0


def show(found: list[Cost], total: Cost, out: Console) -> None:
    """Print costs as a table, the longest job first."""
    columns = ("seconds", "memory, MB", "requests", "tokens", "USD")
    shown = table("job", *columns, numbers=columns)
    for cost in [*sorted(found, key=lambda cost: -(cost.seconds or 0)), total]:
        name = f"{cost.job} ({cost.jobs} jobs)" if cost is total else cost.job
        asked = (f"{cost.calls:,}", _text(cost.tokens, ",.0f"), _text(cost.cost_usd, ".4f"))
        measured = (_text(cost.seconds, ".1f"), _text(cost.memory_mb, ".0f"))
        shown.add_row(name, *measured, *(asked if cost.calls else ("", "", "")))
    out.print(shown)
    if total.unmeasured:
        names = [cost.job for cost in found if cost.unmeasured]
        out.print(f"not measured: {', '.join(names)}", style="red", soft_wrap=True)


def _text(number: float | None, form: str) -> str:
    return "unknown" if number is None else format(number, form)
