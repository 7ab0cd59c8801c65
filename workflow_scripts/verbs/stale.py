"""List what the present configuration and code would make again, and why: causes first, with what follows from each.

Asks Snakemake for the jobs of a run of everything, by default as the last run in this folder was configured, and
compares the key of each with that in the records of the artefacts that exist: settings, inputs and their order, the
meaning of every imported file (comments and docstrings do not count), versions of packages. What was made from a stale
artefact is stale as well. Does not need Snakemake's own records. Exit code 1 if anything is stale or missing; --json
names every artefact with its reasons.

  python -m workflow_scripts stale --configfile config/demo.yaml
"""

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from workflow_scripts.errors import ConfigError
from workflow_scripts.provenance.artefacts import seal_of
from workflow_scripts.provenance.job import by_name
from workflow_scripts.provenance.key import canonical
from workflow_scripts.provenance.record import Input, Record, sha256_of
from workflow_scripts.verbs.compare import HASHES, Change, compare, facts
from workflow_scripts.verbs.plan import CONFIGURATION, Graph, PlannedJob, call_of, planned
from workflow_scripts.verbs.printing import Answer, Row, Rows, rows_of
from workflow_scripts.verbs.records import Records, is_outside, is_sealed, key_of, made_by

_ORDER = Change("input", "order", "another", "as configured")
_DAMAGED = Change("record", "", "damaged or altered", "see verify")
_SHOWN = 40
"""Characters of a value in the table of causes."""


@dataclass
class Staleness:
    """What the present configuration and code would change."""

    jobs: int
    asked: dict[str, str]
    """Artefact to the job of this configuration that writes it."""
    stale: dict[str, list[Change]]
    """Artefact to reasons of its own; none where it is stale by what it was made from."""
    missing: list[str]
    """Files that a job would write and that do not exist."""
    unasked: list[str]
    """Artefacts of the same studies that no job of this configuration writes."""
    behind: dict[str, set[str]]
    """Missing file, or stale artefact with reasons of its own, to what was made from it."""

    @property
    def fresh(self) -> list[str]:
        """Artefacts that the present configuration and code would make alike."""
        return [name for name in self.asked if name not in self.stale]

    @property
    def red(self) -> bool:
        """Whether a run would do anything."""
        return bool(self.stale or self.missing)

    def causes(self) -> list[Row]:
        """One row a reason: how many artefacts have it, and how many others were made from these."""
        found: dict[Change, set[str]] = defaultdict(set)
        for name, changes in self.stale.items():
            for change in changes:
                found[_cause(change)].add(name)
        rows: list[Row] = []
        for cause, names in sorted(found.items(), key=lambda item: (-len(item[1]), item[0])):
            behind = set().union(*(self.behind[name] for name in names)) - names
            first, *more = sorted({self.asked[name].partition("(")[0] for name in names})
            of = f"{first} and {len(more)} more" if more else first
            counts = {"of rule": of, "artefacts": len(names), "behind": len(behind)}
            rows.append(cause.as_row("was", "now") | counts)
        return rows


def _cause(change: Change) -> Change:
    """A change as its table has it: of files their name alone, of the files of one role the role."""
    if change.section in HASHES:
        role = change.key.partition("/")[0]
        return Change(change.section, role if change.section == "input" else change.key, "", "")
    return change._replace(a=str(change.a)[:_SHOWN], b=str(change.b)[:_SHOWN])


def stale(graph: Graph) -> Staleness:
    """Compare the jobs of the present configuration with the artefacts that exist.

    Raises:
        ConfigError: if the jobs belong to no study.
    """
    made = {file for job in graph.jobs for file in job.outputs if file not in job.timings}
    names = {"/".join(Path(file).parts[:2]) for file in made if file.startswith("results/")}
    if not names:
        raise ConfigError("this configuration runs no job. Give another one with --configfile.")
    found = Records((Path(name) for name in sorted(names) if Path(name).is_dir()), hashing=False)
    records = found.by_file
    jobs = {name: job for name, record in records.items() if (job := graph.writer(record))}
    lost = {name: [*_lost(name, records[name], found.dropped)] for name in jobs}
    own = {
        name: changes for name, job in jobs.items() if (changes := reasons(records[name], job) + lost[name])
    }
    broken = _broken(graph, found)
    own |= {name: [_DAMAGED] for name in broken}
    missing = sorted(file for file in made if not Path(file).exists())
    behind = {name: found.made_from(name) & jobs.keys() for name in (*own, *missing)}
    following = sorted(set().union(*behind.values()) - own.keys())
    return Staleness(
        jobs=len(graph.jobs),
        asked={name: made_by(records[name]) for name in jobs}
        | {name: made_by(job) for name, job in broken.items()},
        stale=own | {name: [] for name in following},
        missing=missing,
        unasked=[name for name in records if name not in jobs],
        behind=behind,
    )


def _broken(graph: Graph, found: Records) -> dict[str, PlannedJob]:
    """Files whose seal or record cannot be read, such as those that were cut short, and the jobs that write them."""
    unread = (name for name in found.sizes if is_sealed(Path(name)) and name not in found.by_file)
    return {name: job for name in unread if (job := graph.maker(name)) and name not in job.timings}


def reasons(record: Record, job: PlannedJob) -> list[Change]:
    """What the job that wrote an artefact would do differently now; empty where it would make the same.

    What a record says that does not have the record's own key is not what the job did, and is compared with nothing.
    """
    if key_of(record) != record.key:
        return [_DAMAGED]
    now = _as_planned(record, job)
    if key_of(now) == record.key:
        return []
    return compare(facts(record), facts(now)) or [_ORDER]


def _lost(name: str, record: Record, dropped: Collection[str]) -> Iterator[Change]:
    """Parts of a folder, such as a model's weights or a picture, that its record lists and that are not there."""
    for part in record.files:
        path = Path(name).parent / part
        if path.as_posix() not in dropped and not path.exists():
            yield Change("file", part, "as recorded", "missing")


def _as_planned(record: Record, job: PlannedJob) -> Record:
    """The record of what the job would make now; a missing input, which is a finding of its own, counts as it was."""
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


def _identity(path: Path, was: dict[str, str]) -> str:
    if not path.exists():
        return was.get(path.as_posix(), "missing")
    seal = seal_of(path)
    return seal.identity if seal else sha256_of(path)


ARGUMENTS = CONFIGURATION


def answer(configfile: list[str], config: list[str]) -> Answer:
    """Causes, and how much follows from each; a run would do nothing where there are none."""
    call = call_of(configfile, config)
    found = stale(planned([], call.configfiles, config=call.config))
    lines = [f"missing: {path}" for path in found.missing]
    lines += [f"not asked for by this configuration: {path}" for path in found.unasked]
    verdict = f"{found.jobs} jobs: {len(found.fresh)} artefacts up to date, {len(found.stale)} stale, "
    each = {
        name: {"job": found.asked[name], "reasons": rows_of(changes)} for name, changes in found.stale.items()
    }
    return Answer(
        f"{verdict}{len(found.missing)} files missing",
        not found.red,
        [Rows("causes", found.causes()), *lines],
        {"stale": each, "missing": found.missing, "unasked": found.unasked, "fresh": found.fresh},
    )
