"""Say which artefacts the present configuration and code would make otherwise, and why, key by key.

Asks Snakemake for the commands of a run of everything, and compares them with the records of what is there:
settings, inputs, the bytes of every imported file, versions of packages. What is made from a stale artefact is
stale as well. Needs no record of Snakemake's own. Exit code 1 where anything is stale or missing.
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal, NamedTuple

from rich.console import Console

from workflow_scripts.audit.plan import Job, add_configfile, plan
from workflow_scripts.audit.reading import (
    console,
    flat,
    is_outside,
    made_by,
    print_json,
    seal_at,
    table,
)
from workflow_scripts.audit.verify import Judge, unchecked
from workflow_scripts.closure import ROOT
from workflow_scripts.errors import ConfigError
from workflow_scripts.provenance import Record, sha256_of

ABSENT = "(absent)"


class Reason(NamedTuple):
    """One thing that a job would do otherwise now."""

    kind: Literal["setting", "code", "package", "input", "upstream"]
    key: str
    was: str
    now: str


@dataclass
class Staleness:
    """What the present configuration and code would change."""

    jobs: int
    fresh: list[str] = field(default_factory=list)
    stale: dict[str, list[Reason]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    """Files that a job would write and that are not there."""
    unasked: list[str] = field(default_factory=list)
    """Artefacts of the same studies that no job of this configuration writes."""
    jobs_of: dict[str, str] = field(default_factory=dict)
    """Stale artefact to its job."""

    @property
    def red(self) -> bool:
        """Whether a run would do anything."""
        return bool(self.stale or self.missing)

    def as_data(self) -> dict[str, object]:
        """The findings as JSON can hold them."""
        stale = {
            name: {"job": self.jobs_of[name], "reasons": [r._asdict() for r in reasons]}
            for name, reasons in self.stale.items()
        }
        return {
            "green": not self.red,
            "jobs": self.jobs,
            "fresh": self.fresh,
            "stale": stale,
            "missing": self.missing,
            "unasked": self.unasked,
        }


def stale(root: Path, jobs: Iterable[Job]) -> Staleness:
    """Compare ``jobs``, as the present configuration asks for them, with the artefacts below ``root``.

    Raises:
        ConfigError: if the jobs name no study.
    """
    jobs = list(jobs)
    files = {value for job in jobs for values in job.arguments.values() for value in values}
    names = {"/".join(Path(file).parts[:2]) for file in files if Path(file).parts[0] == "results"}
    if not names:
        raise ConfigError(f"{root}: this configuration runs no job. Name another after --configfile.")
    judge = unchecked(root, [root / name for name in sorted(names) if (root / name).is_dir()])
    found = Staleness(jobs=len(jobs))
    found.missing = sorted(
        file for file in files if file.startswith("results/") and not (root / file).exists()
    )
    for name, record in judge.records.items():
        job = next((job for job in jobs if job.writes(record)), None)
        if job is None:
            found.unasked.append(name)
        elif reasons := list(_reasons(job, record, root)):
            found.stale[name] = reasons
        else:
            found.fresh.append(name)
    _spread(found, judge)
    found.jobs_of = {name: made_by(judge.records[name]) for name in found.stale}
    return found


def _spread(found: Staleness, judge: Judge) -> None:
    """Whatever was made from a stale or missing file is stale too."""
    causes = [*found.stale, *sorted({judge.unit(path) for path in found.missing})]
    for cause in causes:
        for name in judge.made_from(cause) & {*found.fresh, *found.stale}:
            state = "missing" if cause not in found.stale else "stale"
            found.stale.setdefault(name, []).append(Reason("upstream", cause, "", state))
    found.fresh = [name for name in found.fresh if name not in found.stale]


def _reasons(job: Job, record: Record, root: Path) -> Iterator[Reason]:
    yield from _changes("setting", flat(record.settings), flat(job.settings))
    yield from _changes("code", record.code, {file: _hash(file) for file in record.code})
    yield from _changes("package", record.packages, {name: _version(name) for name in record.packages})
    yield from _inputs(job, record, root)


def _changes(
    kind: Literal["setting", "code", "package"], was: Mapping[str, object], now: Mapping[str, object]
) -> Iterator[Reason]:
    for key in sorted(was.keys() | now.keys()):
        before, after = was.get(key, ABSENT), now.get(key, ABSENT)
        if before != after:
            shown = (str(before)[:12], str(after)[:12]) if kind == "code" else (str(before), str(after))
            yield Reason(kind, key, *shown)


@cache
def _hash(file: str) -> str:
    return sha256_of(ROOT / file) if (ROOT / file).is_file() else ABSENT


@cache
def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ABSENT


def _inputs(job: Job, record: Record, root: Path) -> Iterator[Reason]:
    """Inputs that the job would not read now, would read besides, or that were made anew."""
    was = {given.path: given.sha256 for given in record.inputs.values() if not is_outside(given.path)}
    others = {*record.outputs, *record.wildcards.values()}
    values = {value for values in job.arguments.values() for value in values} - others
    now = {value for value in values if not _is_timing(value)}
    for path in sorted(was.keys() | now):
        if path not in now:
            yield Reason("input", path, was[path][:12], ABSENT)
        elif path not in was:
            yield Reason("input", path, ABSENT, "read")
        elif (root / path).exists() and (seal := _identity(root / path)) != was[path]:
            yield Reason("input", path, was[path][:12], seal[:12])


def _is_timing(path: str) -> bool:
    return Path(path).parts[0] == "benchmarks"


def _identity(path: Path) -> str:
    return seal_at(path) or sha256_of(path)


# The command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what ``audit stale`` takes."""
    add_configfile(parser)


def run(args: argparse.Namespace) -> int:
    """Compare and print; exit code 1 if a run would do anything."""
    found = stale(args.root, plan(args.root, args.configfile))
    if args.json:
        print_json(found.as_data())
    else:
        show(found, console())
    return 1 if found.red else 0


def show(found: Staleness, out: Console) -> None:
    """Print reasons for people; artefacts that are stale for the same reasons of their own share rows."""
    shown = table("stale", "why", "key", "was", "now")
    for name, reasons in sorted(found.stale.items()):
        own = [reason for reason in reasons if reason.kind != "upstream"]
        for number, reason in enumerate(own or reasons[:1]):
            shown.add_row("" if number else name, *reason)
    if shown.row_count:
        out.print(shown)
    for path in found.missing:
        out.print(f"missing: {path}", style="red", soft_wrap=True)
    for path in found.unasked:
        out.print(f"not asked for by this configuration: {path}", style="yellow", soft_wrap=True)
    kinds = Counter(
        reason.kind for reasons in found.stale.values() for reason in {r.kind: r for r in reasons}.values()
    )
    why = f" ({', '.join(f'{count} by {kind}' for kind, count in kinds.most_common())})" if kinds else ""
    out.print(
        f"{found.jobs} jobs: {len(found.fresh)} artefacts up to date, {len(found.stale)} stale{why}, "
        f"{len(found.missing)} files missing",
        style="red" if found.red else "green",
        soft_wrap=True,
    )
