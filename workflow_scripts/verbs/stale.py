"""List the artefacts that the present configuration and code would make again, and why.

Gets from Snakemake all jobs of a complete run, of the study or of targets, and compares each job with the records of
its artefacts: settings, inputs and their order, syntax trees of imported files (comments and docstrings do not count),
versions of packages. Artefacts made from a stale one are stale as well. Snakemake's own records are not needed. The
table has a row for each cause, with the number of artefacts that it affects and of those made from them. A second table
counts artefacts by folder and rule. --all prints the path of each; --json lists every artefact with its state, and
every reason.

Exit code 1 if anything is stale or missing.

  python -m workflow_scripts stale --configfile config/demo.yaml
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from workflow_scripts.provenance.artefacts import read_trailer
from workflow_scripts.provenance.job import paths_by_role
from workflow_scripts.provenance.key import canonical
from workflow_scripts.provenance.record import Input, Record, sha256_of
from workflow_scripts.verbs.plan import CONFIGURATION, TARGETS, PlannedJob, given_call, planned, writer
from workflow_scripts.verbs.printing import Answer, PrintedTable, Row, argument, rows_of
from workflow_scripts.verbs.records import HASHES, Change, Records, compare, facts, is_checksummed, job_name

_ORDER = Change("input", "order", "another", "as configured")
_DAMAGED = Change("record", "", "damaged or altered", "see verify")
_MOST_LINES, _DEPTH = 40, 3
"""Maximum number of paths that are printed without --all, and levels of the folders in the counts: three for
results/demo/runs."""
_SHOWN = 40
"""Maximum length of a value in the table of causes."""

ARGUMENTS = (
    TARGETS,
    *CONFIGURATION,
    argument("--all", action="store_true", help="print every path, however many there are"),
)


def answer(targets: list[str], configfile: list[str], config: list[str], all: bool) -> Answer:
    """Return the causes with the number of artefacts that each affects; without causes, a run has nothing to do."""
    jobs = planned(targets, given_call(configfile, config))
    by_file = {file: job for job in jobs for file in job.outputs if file not in job.timings}
    studies = {"/".join(Path(file).parts[:2]) for file in by_file if file.startswith("results/")}
    records = Records((Path(name) for name in sorted(studies) if Path(name).is_dir()), hashing=False)
    asked = _asked(records, by_file)
    causes = {name: changes for name, job in asked.items() if (changes := [*_reasons(records, name, job)])}
    missing = sorted(file for file in by_file if not Path(file).exists())
    behind = {name: records.made_from(name) & asked.keys() for name in (*causes, *missing)}
    each = causes | {name: [] for name in sorted(set().union(*behind.values()) - causes.keys())}
    fresh = [name for name in asked if name not in each]
    unasked = [] if targets else [name for name in records.by_file if name not in asked]
    states = {"stale": [*each], "missing": missing, "not asked for": unasked, "up to date": fresh}
    artefacts = [
        {"path": name, "state": state, "job": _job_of(asked.get(name) or by_file.get(name))}
        for state, names in states.items()
        for name in names
    ]
    rules = {name: record.rule for name, record in records.by_file.items()}
    rules |= {file: job.rule for file, job in by_file.items()}
    listed = {"missing": missing, "not asked for by this configuration": unasked}
    lines = _listed({"stale": [*each]} | listed if all else listed, most=math.inf if all else _MOST_LINES)
    reasons = [{"path": name} | change for name, changes in causes.items() for change in rows_of(changes)]
    return Answer(
        f"{len(jobs)} jobs: {len(fresh)} artefacts up to date, {len(each)} stale, "
        f"{len(missing)} files missing",
        not (each or missing),
        [
            PrintedTable("causes", [*_causes(causes, asked, behind)]),
            PrintedTable("by folder", _by_folder(artefacts, rules)),
            PrintedTable("artefacts", artefacts, shown=()),
            PrintedTable("reasons", reasons, shown=()),
            *lines,
        ],
    )


def _job_of(job: PlannedJob | None) -> str | None:
    """Return the name of a job; None of an artefact that no planned job writes."""
    return job and job_name(job.rule, job.wildcards)


def _listed(paths_by_state: Mapping[str, Sequence[str]], most: float) -> list[str]:
    """Return a line for each path, or one line with their number if it exceeds ``most``."""
    lines = [f"{state}: {path}" for state, paths in paths_by_state.items() for path in paths]
    return (
        lines
        if len(lines) <= most
        else [f"{len(lines):,} paths are missing or not asked for: --all prints them"]
    )


def _by_folder(artefacts: Iterable[Row], rule_of: Mapping[str, str]) -> list[Row]:
    """Return the numbers of artefacts that are not up to date, by folder and rule."""
    numbers: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for artefact in artefacts:
        if artefact["state"] != "up to date":
            folder = "/".join(Path(artefact["path"]).parent.parts[:_DEPTH])
            numbers[folder, rule_of[artefact["path"]]][artefact["state"]] += 1
    states = ("stale", "missing", "not asked for")
    return [
        {"folder": folder, "rule": rule} | {state: by_state[state] for state in states}
        for (folder, rule), by_state in sorted(numbers.items())
    ]


def _asked(records: Records, by_file: Mapping[str, PlannedJob]) -> dict[str, PlannedJob]:
    """Return the job that writes each artefact, whether or not the artefact's record can be read."""
    asked = {name: job for name, record in records.by_file.items() if (job := writer(by_file, record))}
    # A truncated file has no readable record.
    unread = (name for name in records.inspections if is_checksummed(name) and name not in records.by_file)
    return asked | {name: by_file[name] for name in unread if name in by_file}


def _causes(
    causes: Mapping[str, list[Change]], asked: Mapping[str, PlannedJob], behind: Mapping[str, set[str]]
) -> Iterator[Row]:
    """Yield the rows of the table of causes; several files of one role are one row."""
    artefacts: dict[Change, set[str]] = defaultdict(set)
    for name, changes in causes.items():
        for section, key, a, b in changes:
            role = key.partition("/")[0] if section == "input" else key
            sides = ("", "") if section in HASHES else (str(a)[:_SHOWN], str(b)[:_SHOWN])
            artefacts[Change(section, role, *sides)].add(name)
    for cause, names in sorted(artefacts.items(), key=lambda item: (-len(item[1]), item[0])):
        after = set().union(*(behind[name] for name in names)) - names
        first, *more = sorted({asked[name].rule for name in names})
        yield dict(zip(("what", "key", "was", "now"), cause, strict=True)) | {
            "of rule": f"{first} and {len(more)} more" if more else first,
            "artefacts": len(names),
            "behind": len(after),
        }


def _reasons(records: Records, name: str, job: PlannedJob) -> Iterator[Change]:
    """Yield the changes in the job that wrote an artefact, and missing files of a model folder.

    A record whose key is not that of its entries was altered, and is not compared.
    """
    record = records.by_file.get(name)
    if record is None or record.recomputed_key() != record.key:
        yield _DAMAGED
    elif (now := _as_planned(record, job)).recomputed_key() != record.key:
        yield from compare(facts(record), facts(now)) or [_ORDER]
    for part in record.files if record else ():  # Snakemake checks only the record
        if not Path(name).parent.joinpath(part).exists():
            yield Change("file", part, "as recorded", "missing")


def _as_planned(record: Record, job: PlannedJob) -> Record:
    """Return the record that the job would write now; a missing input counts as unchanged, and is listed itself."""
    was = {given.path: given.sha256 for _, given in record.listed_inputs()}
    inputs = {
        role: [_input(path, was) for path in given] if isinstance(given, list) else _input(given, was)
        for role, given in paths_by_role(job.roles).items()
    }
    outside = {role: given for role, given in record.inputs.items() if role not in record.internal}
    decides = {
        "wildcards": dict(job.wildcards),
        "settings": canonical(job.settings),
        "inputs": inputs | outside,
        "meaning": dict(job.code_hashes),
        "packages": dict(job.packages),
    }
    return record.model_copy(update=decides)


def _input(path: Path, was: Mapping[str, str]) -> Input:
    """Return an input with its present hash, or with the recorded one if it is missing."""
    name = path.as_posix()
    if not path.exists():
        return Input(path=name, sha256=was.get(name, "missing"))
    trailer = read_trailer(path)
    return Input(path=name, sha256=trailer.identity if trailer else sha256_of(path))
