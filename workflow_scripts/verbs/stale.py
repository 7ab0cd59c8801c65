"""List the artefacts that the present configuration and code would make again, and why.

Asks Snakemake for the jobs of a run from nothing, of the whole study or of targets, and compares each job with the
records of its artefacts: settings, inputs and their order, syntax trees of imported files (comments and docstrings do
not count), versions of packages. Artefacts made from a stale one are stale as well. Snakemake's own records are not
needed. The table has a row for each cause, with the number of artefacts that it affects and of those made from them;
--json names every artefact with its reasons.

Exit code 1 if anything is stale or missing.

  python -m workflow_scripts stale --configfile config/demo.yaml
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from workflow_scripts.errors import ConfigError
from workflow_scripts.provenance.artefacts import seal_of
from workflow_scripts.provenance.job import by_name
from workflow_scripts.provenance.key import canonical
from workflow_scripts.provenance.record import Input, Record, sha256_of
from workflow_scripts.verbs.compare import HASHES, Change, compare, facts
from workflow_scripts.verbs.plan import CONFIGURATION, TARGETS, Graph, PlannedJob, call_of, planned
from workflow_scripts.verbs.printing import Answer, Row, Rows, rows_of
from workflow_scripts.verbs.records import Records, is_outside, is_sealed, key_of, made_by

_ORDER = Change("input", "order", "another", "as configured")
_DAMAGED = Change("record", "", "damaged or altered", "see verify")
_SHOWN = 40
"""Characters of a value in the table of causes."""


class Staleness(NamedTuple):
    """What the present configuration and code would change."""

    jobs: int
    asked: Mapping[str, PlannedJob]
    """Artefact to the job of this configuration that writes it."""
    stale: Mapping[str, list[Change]]
    """Artefact to reasons of its own; none if it is stale by an artefact that it was made from."""
    missing: list[str]
    """Files that a job would write and that do not exist."""
    unasked: list[str]
    """Artefacts of the same studies that no job of this configuration writes."""
    behind: Mapping[str, set[str]]
    """Missing file, or stale artefact with reasons of its own, to the artefacts that were made from it."""

    @property
    def fresh(self) -> list[str]:
        """Artefacts that the present configuration and code would make alike."""
        return [name for name in self.asked if name not in self.stale]

    def causes(self) -> list[Row]:
        """A row for each reason, with the number of artefacts that have it and of others that were made from these."""
        found: dict[Change, set[str]] = defaultdict(set)
        for name, changes in self.stale.items():
            for change in changes:
                found[_cause(change)].add(name)
        rows: list[Row] = []
        for cause, names in sorted(found.items(), key=lambda item: (-len(item[1]), item[0])):
            behind = set().union(*(self.behind[name] for name in names)) - names
            first, *more = sorted({self.asked[name].rule for name in names})
            of = f"{first} and {len(more)} more" if more else first
            counts = {"of rule": of, "artefacts": len(names), "behind": len(behind)}
            rows.append(cause.as_row("was", "now") | counts)
        return rows


def _cause(change: Change) -> Change:
    """A change as its table has it: files by name, several files of one role by the role."""
    if change.section in HASHES:
        role = change.key.partition("/")[0]
        return Change(change.section, role if change.section == "input" else change.key, "", "")
    return change._replace(a=str(change.a)[:_SHOWN], b=str(change.b)[:_SHOWN])


def stale(graph: Graph) -> Staleness:
    """Compare the jobs of the present configuration with the artefacts that exist.

    Raises:
        ConfigError: if the jobs belong to no study.
    """
    made = {file: job for job in graph.jobs for file in job.outputs if file not in job.timings}
    names = {"/".join(Path(file).parts[:2]) for file in made if file.startswith("results/")}
    if not names:
        raise ConfigError("this configuration runs no job. Give another one with --configfile.")
    records = Records((Path(name) for name in sorted(names) if Path(name).is_dir()), hashing=False)
    asked = {name: job for name, record in records.by_file.items() if (job := graph.writer(record))}
    own = {name: changes for name, job in asked.items() if (changes := [*_reasons(records, name, job)])}
    # A file that was cut short has no record that can be read.
    unread = (name for name in records.sizes if is_sealed(name) and name not in records.by_file)
    broken = {name: made[name] for name in unread if name in made}
    asked, own = asked | broken, own | {name: [_DAMAGED] for name in broken}
    missing = sorted(file for file in made if not Path(file).exists())
    behind = {name: records.made_from(name) & asked.keys() for name in (*own, *missing)}
    following = sorted(set().union(*behind.values()) - own.keys())
    unasked = [name for name in records.by_file if name not in asked]
    return Staleness(len(graph.jobs), asked, own | {name: [] for name in following}, missing, unasked, behind)


def _reasons(records: Records, name: str, job: PlannedJob) -> Iterator[Change]:
    """What the job that wrote an artefact would do differently now, and files beside a record that are gone.

    A record that does not have its own key does not say what the job did, and is compared with nothing.
    """
    record = records.by_file[name]
    now = _as_planned(record, job)
    if key_of(record) != record.key:
        yield _DAMAGED
    elif key_of(now) != record.key:
        yield from compare(facts(record), facts(now)) or [_ORDER]
    for part in record.files:  # Snakemake looks at the record alone
        path = Path(name).parent / part
        if path.as_posix() not in records.dropped and not path.exists():
            yield Change("file", part, "as recorded", "missing")


def _as_planned(record: Record, job: PlannedJob) -> Record:
    """The record that the job would write now; a missing input, which is a finding of its own, counts as it was."""
    was = {given.path: given.sha256 for given in record.inputs.values()}
    inputs = {
        role: Input(path=path.as_posix(), sha256=_identity(path, was))
        for role, path in by_name(job.roles).items()
    }
    outside = {role: given for role, given in record.inputs.items() if is_outside(given.path)}
    decides = {
        "wildcards": dict(job.wildcards),
        "settings": canonical(job.settings),
        "inputs": inputs | outside,
        "meaning": dict(job.meaning),
        "packages": dict(job.packages),
    }
    return record.model_copy(update=decides)


def _identity(path: Path, was: Mapping[str, str]) -> str:
    if not path.exists():
        return was.get(path.as_posix(), "missing")
    seal = seal_of(path)
    return seal.identity if seal else sha256_of(path)


ARGUMENTS = (TARGETS, *CONFIGURATION)


def answer(targets: list[str], configfile: list[str], config: list[str]) -> Answer:
    """Causes, and the number of artefacts behind each; a run would do nothing if there are none."""
    found = stale(planned(targets, call_of(configfile, config)))
    unasked = [] if targets else found.unasked
    lines = [f"missing: {path}" for path in found.missing]
    lines += [f"not asked for by this configuration: {path}" for path in unasked]
    each = {
        name: {
            "job": made_by(found.asked[name].rule, found.asked[name].wildcards),
            "reasons": rows_of(changes),
        }
        for name, changes in found.stale.items()
    }
    return Answer(
        f"{found.jobs} jobs: {len(found.fresh)} artefacts up to date, {len(found.stale)} stale, "
        f"{len(found.missing)} files missing",
        not (found.stale or found.missing),
        [Rows("causes", found.causes()), *lines],
        {"stale": each, "missing": found.missing, "unasked": unasked, "fresh": found.fresh},
    )
