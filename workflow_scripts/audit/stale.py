"""List artefacts that the present configuration and code would make differently, and why, key by key.

Asks Snakemake for the commands of a run of everything and compares the key of each job with that in the records of the
artefacts that exist: settings, inputs and their order, the meaning of every imported file (comments and docstrings do
not count), versions of packages. What was made from a stale artefact is stale as well. Does not need Snakemake's own
records. Exit code 1 if anything is stale or missing.
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from rich.console import Console

from workflow_scripts.audit.lookup import flat, identity_at, is_outside, key_of, made_by
from workflow_scripts.audit.plan import Job, add_configfile, by_file, job_writing, plan
from workflow_scripts.audit.printing import console, print_json, table
from workflow_scripts.audit.verify import Verifier, unchecked
from workflow_scripts.errors import ConfigError
from workflow_scripts.provenance.key import canonical, job_key
from workflow_scripts.provenance.record import Record, sha256_of

ABSENT = "(absent)"
_ORDERS = ("another", "as configured")


class Reason(NamedTuple):
    """One thing that a job would do differently now."""

    kind: Literal["setting", "code", "package", "wildcard", "input", "upstream"]
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
    """Files that a job would write and that do not exist."""
    unasked: list[str] = field(default_factory=list)
    """Artefacts of the same studies that no job of this configuration writes."""
    jobs_of: dict[str, str] = field(default_factory=dict)
    """Stale artefact to its job."""

    @property
    def red(self) -> bool:
        """Whether a run would do anything."""
        return bool(self.stale or self.missing)

    def as_data(self) -> dict[str, object]:
        """The findings as data for JSON."""
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
    """Compare the jobs of the present configuration with the artefacts below ``root``.

    Raises:
        ConfigError: if the jobs belong to no study.
    """
    jobs = list(jobs)
    files = {value for job in jobs for values in job.arguments.values() for value in values}
    names = {"/".join(Path(file).parts[:2]) for file in files if Path(file).parts[0] == "results"}
    if not names:
        raise ConfigError(f"{root}: this configuration runs no job. Give another one with --configfile.")
    verifier = unchecked(root, [root / name for name in sorted(names) if (root / name).is_dir()])
    found = Staleness(jobs=len(jobs))
    read = {given.path for record in verifier.records.values() for given in record.inputs.values()}
    made = {file for file in files if file.startswith("results/") or (is_timing(file) and file in read)}
    found.missing = sorted(file for file in made if not (root / file).exists())
    writers = by_file(jobs)
    for name, record in verifier.records.items():
        job = job_writing(record, writers)
        if job is None:
            found.unasked.append(name)
        elif not _key(job, record, root) == record.key == key_of(record):
            found.stale[name] = list(_reasons(job, record, root)) or [Reason("input", "order", *_ORDERS)]
        else:
            found.fresh.append(name)
    _spread(found, verifier)
    found.jobs_of = {name: made_by(verifier.records[name]) for name in found.stale}
    return found


def _spread(found: Staleness, verifier: Verifier) -> None:
    """Mark everything that was made from a stale or missing file as stale."""
    causes = [*found.stale, *sorted({verifier.artefact_of(path) for path in found.missing})]
    for cause in causes:
        for name in verifier.made_from(cause) & {*found.fresh, *found.stale}:
            state = "missing" if cause not in found.stale else "stale"
            found.stale.setdefault(name, []).append(Reason("upstream", cause, "", state))
    found.fresh = [name for name in found.fresh if name not in found.stale]


def _reasons(job: Job, record: Record, root: Path) -> Iterator[Reason]:
    yield from _changes("setting", flat(record.settings), flat(canonical(job.settings)))
    yield from _changes("code", record.meaning, job.meaning)
    yield from _changes("package", record.packages, job.packages)
    given = {name: values[0] for name, values in job.arguments.items() if name in record.wildcards}
    yield from _changes("wildcard", record.wildcards, given)
    yield from _inputs(job, record, root)


def _key(job: Job, record: Record, root: Path) -> str:
    """The key that the job would have now; a missing input, which is a finding of its own, counts as it was."""
    was = {given.path: given.sha256 for given in record.inputs.values()}
    read = read_by(job, record)
    inputs = {
        role if role in record.inputs else f"{role}/{path}": (
            _identity(root / path) if (root / path).exists() else was.get(path, ABSENT)
        )
        for role, paths in job.arguments.items()
        for path in paths
        if role not in record.wildcards and path in read
    }
    return job_key(
        job.rule,
        wildcards={name: job.arguments.get(name, [ABSENT])[0] for name in record.wildcards},
        settings=job.settings,
        inputs=inputs,
        meaning=job.meaning,
        packages=job.packages,
    )


def _changes(
    kind: Literal["setting", "code", "package", "wildcard"],
    was: Mapping[str, object],
    now: Mapping[str, object],
) -> Iterator[Reason]:
    for key in sorted(was.keys() | now.keys()):
        before, after = was.get(key, ABSENT), now.get(key, ABSENT)
        if before != after:
            shown = (str(before)[:12], str(after)[:12]) if kind == "code" else (str(before), str(after))
            yield Reason(kind, key, *shown)


def _inputs(job: Job, record: Record, root: Path) -> Iterator[Reason]:
    """Inputs that the job would no longer read, would read in addition, or that have been rebuilt."""
    was = {given.path: given.sha256 for given in record.inputs.values() if not is_outside(given.path)}
    now = read_by(job, record)
    for path in sorted(was.keys() | now):
        if path not in now:
            yield Reason("input", path, was[path][:12], ABSENT)
        elif path not in was:
            yield Reason("input", path, ABSENT, "read")
        elif (root / path).exists() and (now_is := _identity(root / path)) != was[path]:
            yield Reason("input", path, was[path][:12], now_is[:12])


def read_by(job: Job, record: Record) -> set[str]:
    """Files that the job of ``record`` would read.

    That is all it is given but wildcards, its outputs, and speeds that it writes or shows.
    """
    named = {
        value for role, values in job.arguments.items() if role not in record.wildcards for value in values
    }
    was = {given.path for given in record.inputs.values()}
    return {value for value in named - {*record.outputs} if value in was or not is_timing(value)}


def is_timing(path: str) -> bool:
    """Whether a file of a job holds measured times or speeds, which differ from run to run."""
    return Path(path).parts[0] == "benchmarks"


def _identity(path: Path) -> str:
    return identity_at(path) or sha256_of(path)


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
    """Print the reasons as a table; for what is stale only because of its inputs, just the first of them."""
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
