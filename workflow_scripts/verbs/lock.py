"""Write a lock: the contents of every artefact of a study, and the settings, code, packages and sources behind them.

The file is sorted, and small enough to commit together with the numbers of a study. The hash of an artefact's contents
excludes its record, so equal results have equal hashes.

With --check FILE, nothing is written, and the artefacts are compared with those of an earlier lock. Each artefact that
was added, removed or changed is listed with its first difference, in this order: settings, code, packages, sources,
inputs, machine. If nothing differs, the file was edited and its checksum renewed, or its job is not deterministic. With
--short, the verb prints one line: whether the printed numbers are those of the lock. Model cards that were made after
the lock are counted, but are not a difference.

Exit code 1 if any artefact was added or removed, or has other contents or settings.

  python -m workflow_scripts lock results/demo --check config/demo.lock.json
"""

import hashlib
import json
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
from pydantic import Field

from workflow_scripts.columns import TABLE
from workflow_scripts.errors import ConfigError, DataError, advice
from workflow_scripts.provenance.artefacts import atomic, content_identity
from workflow_scripts.provenance.record import CodeOrigin, Record
from workflow_scripts.reporting.cells import number
from workflow_scripts.settings.base import Settings
from workflow_scripts.verbs.plan import FOLDERS, audited_folders
from workflow_scripts.verbs.printing import Answer, PrintedTable, Row, argument
from workflow_scripts.verbs.records import Facts, Records, compare

LOCK = Path("results/provenance.lock.json")
"""Default path of the lock, the only file below results/ that Git tracks."""
_CARDS = "write_model_card"
"""Rule of the artefacts that a study has only on request."""
ANOTHER_MACHINE = "another machine:"
UNEXPLAINED = (
    "no difference in its making: the file was edited and its checksum renewed, or its job is not "
    "deterministic"
)
Hashes = dict[str, str]


class Lock(Settings, extra="ignore"):
    """Contents of a lock; an older lock may have more keys."""

    contents: Hashes
    """Hashes of artefacts without their records."""
    settings: Hashes
    code: Hashes
    commits: list[str]
    made_on: Hashes
    packages: Hashes
    printed: dict[str, Hashes] = Field(
        default={},
        description="Means of each table with the printed digits, by run and heading; gaps are left out.",
    )
    sources: Hashes
    """Hashes of external sources and of files in ``resources``."""


def printed_means(table: Path) -> Hashes:
    """Return the means of a table with the printed digits, by run and heading; gaps are left out."""
    return {
        f"{row['run']}, {row['heading']}": number(row["mean"], row["digits"])
        for row in pq.read_table(table).to_pylist()
        if row["mean"] is not None
    }


def machine(origin: CodeOrigin) -> str:
    """Return a description of the machine on which an artefact was made."""
    parts = [origin.processor, origin.capability, f"{origin.threads} threads", origin.gpu]
    return ", ".join([*filter(None, parts), f"Python {origin.python}"])


def lock(studies: Iterable[Path]) -> Lock:
    """Return the lock of ``studies``: contents of all artefacts, and settings, code, packages and sources of records.

    Raises:
        DataError: if an artefact is damaged or missing.
    """
    study = Records(studies)
    for name in sorted({*study.damage, *(path for path in study.listed if not Path(path).exists())}):
        raise DataError(
            f"{name}: damaged or missing. Run python -m workflow_scripts verify, repair it, and lock again."
        )
    return locked(study)


def locked(study: Records) -> Lock:
    """Return the lock of the undamaged artefacts of some studies."""
    records = study.by_file.values()
    return Lock(
        contents={name: content_identity(Path(name), ()) for name in study.by_file},
        settings={name: settings_hash(record) for name, record in study.by_file.items()},
        code={file: sha256 for record in records for file, sha256 in record.meaning.items()},
        commits=sorted({commit_of(record.origin) for record in records}),
        made_on={name: machine(record.origin) for name, record in study.by_file.items()},
        packages={name: version for record in records for name, version in record.packages.items()},
        printed={name: printed_means(Path(name)) for name in filter(is_table, study.by_file)},
        sources={path: sha256 for record in records for path, sha256 in sources(study, record).items()},
    )


def settings_hash(record: Record) -> str:
    """Return the hash of an artefact's settings."""
    return hashlib.sha256(json.dumps(record.settings, sort_keys=True).encode()).hexdigest()


def commit_of(origin: CodeOrigin) -> str:
    """Return the commit of an artefact's code, and whether files had changed since; "unknown" without a repository."""
    commit = origin.commit or "unknown"
    return f"{commit} (dirty)" if origin.dirty else commit


def sources(study: Records, record: Record) -> Hashes:
    """Return the hashes of a record's inputs that are not artefacts of the study, by path."""
    return {
        given.path: given.sha256 for _, given in record.listed_inputs() if given.path not in study.by_file
    }


def is_table(name: str) -> bool:
    """Return whether an artefact is the table of an experiment or of the extraction study."""
    return name.endswith(".parquet") and pq.read_schema(name).remove_metadata() == TABLE


# Checking


class LockComparison(NamedTuple):
    """Comparison of artefacts with the same studies in a lock."""

    same: int
    """Number of artefacts with the contents and settings of the lock, whichever commit made them."""
    differences: Sequence[Row]
    """A row for each other artefact: path, kind and reason."""
    numbers: Sequence[Row]
    """A row for each printed number that differs: table, cell, number in the lock, present number."""
    compared: int
    """Number of printed numbers in the lock."""
    cards: int
    """Number of model cards that were made after the lock."""


def check(studies: list[Path], was: Lock) -> LockComparison:
    """Compare the artefacts of ``studies`` with those of the same studies in a lock."""
    study = Records(studies)
    now = locked(study)
    wanted = {
        name for name in was.contents if name.startswith(tuple(f"{folder}/" for folder in study.folders))
    }
    here = wanted & now.contents.keys()
    changed = {name for name in here if _stated(was, name) != _stated(now, name)}
    added = now.contents.keys() - wanted
    cards = {name for name in added if study.by_file[name].rule == _CARDS}
    rows = [
        *((name, "damaged", "its checksum does not match; see verify") for name in study.damage),
        *((name, "added", "not in the lock") for name in added - cards),
        *((name, "changed", _why(was, now, study, name)) for name in changed),
        *((name, "removed", "only in the lock") for name in wanted - here - study.damage.keys()),
    ]
    printed = [
        {"table": name, "cell": cell, "was": text, "now": now.printed.get(name, {}).get(cell)}
        for name in sorted(wanted)
        for cell, text in was.printed.get(name, {}).items()
    ]
    return LockComparison(
        len(here - changed),
        [dict(zip(("path", "kind", "why"), row, strict=True)) for row in sorted(rows)],
        [row for row in printed if row["was"] != row["now"]],
        len(printed),
        len(cards),
    )


def _stated(lock: Lock, name: str) -> tuple[str | None, str | None]:
    """Return the hashes of an artefact's contents and settings in a lock."""
    return lock.contents.get(name), lock.settings.get(name)


def _why(was: Lock, now: Lock, study: Records, name: str) -> str:
    """Return the first section of an artefact's making that differs; a differing input has a row of its own."""
    record = study.by_file[name]
    making: list[Facts] = [
        {
            "settings": {"": lock.settings.get(name)},
            "code": {file: lock.code.get(file) for file in record.meaning},
            "package": {package: lock.packages.get(package) for package in record.packages},
            "source": {path: lock.sources.get(path) for path in sources(study, record)},
            "made from": {given.path: _stated(lock, given.path) for _, given in record.listed_inputs()},
            ANOTHER_MACHINE: {"": lock.made_on.get(name)},
        }
        for lock in (was, now)
    ]
    changes = compare(*making)
    if not changes:
        return UNEXPLAINED
    section, key, a, b = changes[0]
    values = f" {a} -> {b}" if section in ("package", ANOTHER_MACHINE) else ""
    more = sum(change.section == section for change in changes) - 1
    others = f" and {more} more" if more else ""
    return f"{section} {key}".rstrip() + values + others


def read_lock(file: Path) -> Lock:
    """Return the content of a lock file.

    Raises:
        DataError: if the file is missing or not a lock of this version.
    """
    if not file.exists() and (locks := sorted(path.name for path in file.parent.glob("*.lock.json"))):
        raise DataError(f"{file}: no such lock. {advice(file.name, locks)}")
    try:
        return Lock.model_validate_json(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) else "not a lock of this version"
        raise DataError(f"{file}: {problem}. Write a lock: python -m workflow_scripts lock.") from error


# The verb


ARGUMENTS = (
    *FOLDERS,
    argument(
        "--to",
        exclusive=True,
        type=Path,
        default=LOCK,
        metavar="FILE",
        help="file to write; default: %(default)s",
    ),
    argument("--short", action="store_true", help="with --check: one line on whether numbers differ"),
    argument(
        "--check",
        exclusive=True,
        dest="locked",
        type=Path,
        metavar="FILE",
        help="compare with this lock, and write nothing; default of FOLDER: the studies of the lock",
    ),
)


def answer(
    studies: list[Path], configfile: list[str], config: list[str], to: Path, short: bool, locked: Path | None
) -> Answer:
    """Write a lock, or return the differences between artefacts and a lock.

    Raises:
        ConfigError: if ``short`` is given without a lock to compare with.
    """
    if locked is None:
        if short:
            raise ConfigError("--short: nothing to compare with. Name a lock with --check FILE.")
        content = lock(audited_folders(studies, configfile, config))
        with atomic(to) as temporary:
            temporary.write_text(json.dumps(content.model_dump(), indent=1, sort_keys=True) + "\n", "utf-8")
        return Answer(f"{to}: {len(content.contents)} artefacts")
    was = read_lock(locked)
    if not (studies or configfile or config):
        of_lock = dict.fromkeys("/".join(Path(name).parts[:2]) for name in was.contents)
        studies = [*map(Path, of_lock)]
    folders = audited_folders(studies, configfile, config)
    comparison = check(folders, was)
    cards = f"; model cards made since: {comparison.cards}" if comparison.cards else ""
    said = f"{comparison.same} artefacts as in {locked}, {len(comparison.differences)} not{cards}"
    words = ["python", "-m", "workflow_scripts", "lock", *map(str, folders), "--check", str(locked)]
    return Answer(
        _in_short(comparison, f"`{shlex.join(words)}` for details") if short else said,
        not comparison.differences,
        [
            PrintedTable("differences", comparison.differences, shown=() if short else None),
            PrintedTable("numbers", comparison.numbers, shown=()),
        ],
        {"equal": comparison.same, "model_cards": comparison.cards},
    )


def _in_short(comparison: LockComparison, details: str) -> str:
    """Return one line on whether the printed numbers are those of the lock."""
    if not comparison.differences:
        return f"As published: {comparison.same} artefacts have the contents of the lock."
    if comparison.numbers:
        first = comparison.numbers[0]
        change = f"{first['table']}: {first['cell']}: {first['was']} -> {first['now']}"
        counted = f"{len(comparison.numbers)} of {comparison.compared} numbers differ, such as {change}"
        return f"Not as published: {counted}; {details}."
    count = len(comparison.differences)
    others = f"{count} artefacts differ or are" if count > 1 else "1 artefact differs or is"
    return f"As published: all {comparison.compared} numbers; {others} not in the lock: {details}."
