"""Write down the checksum and contents of every artefact, and the code, packages and sources behind them.

The file is sorted, and small enough to commit together with the numbers of a study. A checksum covers the record, which
names settings, code and packages; the hash under "contents" leaves the record out, so that it is the same wherever the
results are the same.

With --check FILE, nothing is written: the artefacts are held against a lock that was written before. Each that was
added, removed or changed is listed with what in its making differs: settings, code, packages, sources, inputs, and if
none of these, the machine. Where nothing differs, it was edited and sealed again, or its job does not repeat itself.
Exit code 1 if any artefact was added or removed, or has other contents or settings.

  python -m workflow_scripts lock results/demo --check config/demo.lock.json
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pydantic import Field

from workflow_scripts.columns.tables import TABLE
from workflow_scripts.config import Settings
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import atomic
from workflow_scripts.provenance.record import Origin, Record
from workflow_scripts.reporting.cells import number
from workflow_scripts.verbs.compare import Facts, compare, contents_hash
from workflow_scripts.verbs.printing import Answer, Row, Rows, argument
from workflow_scripts.verbs.records import Records, studies_of, study_folder
from workflow_scripts.verbs.verify import not_as_written

LOCK = Path("results/provenance.lock.json")
"""Default path of the lock: the one file below results/ that Git tracks."""
UNEXPLAINED = "nothing in its making differs: edited and sealed again, or its job does not repeat itself"
Hashes = dict[str, str]


class Lock(Settings, extra="ignore"):
    """What a lock says of some studies; one that was kept for years may say more."""

    artefacts: Hashes
    """Of whole files, records among them."""
    contents: Hashes
    """Of what each artefact holds besides its record, and besides what differs from run to run."""
    settings: Hashes
    code: Hashes
    commits: list[str]
    made_on: Hashes
    packages: Hashes
    printed: dict[str, Hashes] = Field(
        default={},
        description="Table to the means with the digits that are printed, by run and heading; gaps are left out.",
    )
    sources: Hashes
    """From outside, and from ``resources``."""


def lock_of(study: Records) -> Lock:
    """What there is to say of studies now; of what is damaged or missing nothing."""
    records = study.by_file
    given = [given for record in records.values() for given in record.inputs.values()]
    origins = [record.origin for record in records.values()]
    return Lock(
        artefacts={name: str(study.inspections[name].checksum) for name in records},
        contents={name: contents_hash(Path(name), record) for name, record in records.items()},
        settings={name: settings_hash(record.settings) for name, record in records.items()},
        code={path: sha for record in records.values() for path, sha in record.meaning.items()},
        commits=sorted({f"{origin.commit}{' (dirty)' * origin.dirty}" for origin in origins}),
        made_on={name: made_on(record.origin) for name, record in records.items()},
        packages={name: version for record in records.values() for name, version in record.packages.items()},
        printed={name: printed(Path(name)) for name in records if _is_table(name)},
        sources={used.path: used.sha256 for used in given if used.path not in records},
    )


def printed(table: Path) -> Hashes:
    """The means of a table with the digits that are printed, by run and heading; gaps are left out."""
    return {
        f"{row['run']}, {row['heading']}": number(row["mean"], row["digits"])
        for row in pq.read_table(table).to_pylist()
        if row["mean"] is not None
    }


def _is_table(name: str) -> bool:
    return name.endswith(".parquet") and pq.read_schema(name).remove_metadata() == TABLE


def made_on(origin: Origin) -> str:
    """The machine on which an artefact was made."""
    parts = [origin.processor, origin.capability, f"{origin.threads} threads", origin.gpu]
    return ", ".join([*filter(None, parts), f"Python {origin.python}"])


def settings_hash(settings: Mapping[str, Any]) -> str:
    """Hash of the slice of the configuration that a job read."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def lock(studies: Iterable[Path]) -> Lock:
    """Checksums and contents of all artefacts of ``studies``, and the code, packages and sources in their records.

    Raises:
        DataError: if an artefact is damaged or gone, since a lock must not vouch for it.
    """
    study = Records(studies)
    made = {path for record in study.by_file.values() for path in record.outputs}
    for name in (*not_as_written(study), *sorted(path for path in made if not Path(path).exists())):
        raise DataError(
            f"{name}: damaged or missing. Run python -m workflow_scripts verify, repair it, and lock again."
        )
    return lock_of(study)


# Checking


@dataclass
class Comparison:
    """A tree held against a lock: what of the lock is about the same studies."""

    was: Lock
    now: Lock
    records: Mapping[str, Record]
    damaged: list[str]
    wanted: set[str]
    """Artefacts that the lock names."""

    @property
    def same(self) -> set[str]:
        """Artefacts with the contents and settings that the lock names, whatever commit made them."""
        return {
            name
            for name in self.wanted & self.now.contents.keys()
            if self.now.contents[name] == self.was.contents[name]
            and self.now.settings[name] == self.was.settings.get(name)
        }

    @property
    def elsewhere(self) -> list[str]:
        """How the machines differ that made the artefacts of lock and tree."""
        return sorted({self._moved(name) for name in self.wanted & self.records.keys()} - {""})

    @property
    def compared(self) -> dict[tuple[str, str], str]:
        """The printed numbers of the lock, by table and cell."""
        tables = ((name, self.was.printed.get(name, {})) for name in sorted(self.wanted))
        return {(name, cell): text for name, cells in tables for cell, text in cells.items()}

    @property
    def numbers(self) -> dict[str, tuple[str, str | None]]:
        """Printed numbers that differ: that of the lock, and that of the tree."""
        return {
            f"{table}: {cell}": (was, now)
            for (table, cell), was in self.compared.items()
            if was != (now := self.now.printed.get(table, {}).get(cell))
        }

    @property
    def differences(self) -> list[Row]:
        """What is not as it should be: path, kind and why."""
        changed = (self.wanted & self.records.keys()) - self.same
        others = {
            "damaged": (self.damaged, "its checksum is broken; see verify"),
            "added": (self.records.keys() - self.wanted, "not in the lock"),
            "removed": (self.wanted - {*self.records, *self.damaged}, "in the lock alone"),
        }
        found = [(name, kind, why) for kind, (names, why) in others.items() for name in names]
        found += [(name, "changed", self._why(name, changed)) for name in changed]
        return [dict(zip(("path", "kind", "why"), one, strict=True)) for one in sorted(found)]

    def _why(self, name: str, changed: set[str]) -> str:
        """What in an artefact's making differs; inputs that differ are named, since they explain themselves."""
        record = self.records[name]
        found: dict[str, list[str]] = {}
        for change in compare(*self._sides(name, record)):
            versions = f" {change.a} -> {change.b}" if change.section == "package" else ""
            found.setdefault(change.section, []).append(f"{change.key}{versions}")
        if given := changed & {one.path for one in record.inputs.values()}:
            found["made from"] = sorted(given)
        reasons = [
            f"{section} {keys[0]}".rstrip() + f" and {len(keys) - 1} more" * (len(keys) > 1)
            for section, keys in found.items()
        ]
        return "; ".join(reasons) or self._moved(name) or UNEXPLAINED

    def _moved(self, name: str) -> str:
        was, now = self.was.made_on.get(name), self.now.made_on[name]
        return f"another machine: {was} -> {now}" if was != now else ""

    def _sides(self, name: str, record: Record) -> tuple[Facts, Facts]:
        """What a lock and a record say of the same: a lock has settings as a hash, and of inputs sources alone."""
        sources = {
            one.path: one.sha256 for one in record.inputs.values() if one.path not in self.now.artefacts
        }
        now = {"code": record.meaning, "package": record.packages, "source": sources}
        tables = {"code": self.was.code, "package": self.was.packages, "source": self.was.sources}
        was = {section: {key: tables[section].get(key) for key in now[section]} for section in tables}
        settings = self.was.settings.get(name), settings_hash(record.settings)
        return {"settings": {"": settings[0]}, **was}, {"settings": {"": settings[1]}, **now}


def check(studies: list[Path], file: Path) -> Comparison:
    """Compare the artefacts of ``studies`` with those that a lock names in the same studies.

    Raises:
        DataError: if ``file`` is no lock.
    """
    locked = read_lock(file)
    study = Records(studies)
    folders = tuple(f"{folder}/" for folder in study.folders)
    wanted = {name for name in locked.contents if name.startswith(folders)}
    return Comparison(locked, lock_of(study), study.by_file, not_as_written(study), wanted)


def read_lock(file: Path) -> Lock:
    """The content of a lock file.

    Raises:
        DataError: if it is missing or no lock that can be checked.
    """
    try:
        return Lock.model_validate_json(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        found = error.strerror if isinstance(error, OSError) else "not a lock of this version"
        raise DataError(f"{file}: {found}. Write a lock: python -m workflow_scripts lock.") from error


# The verb


ARGUMENTS = (
    argument("studies", type=study_folder, nargs="*", help="folders of studies; default: all below results/"),
    argument("--to", type=Path, default=LOCK, help="file to write; default: %(default)s"),
    argument("--short", action="store_true", help="with --check: say in a line whether numbers differ"),
    argument(
        "--check", dest="locked", type=Path, metavar="FILE", help="compare with this lock, and write nothing"
    ),
)


def answer(studies: list[Path], to: Path, short: bool, locked: Path | None) -> Answer:
    """What was written, or how the artefacts differ from a lock."""
    if locked is not None:
        found = check(studies_of(studies), locked)
        named = " ".join(map(str, studies))
        return _in_short(found, f"{named} --check {locked}") if short else _checked(found, locked)
    content = lock(studies_of(studies))
    with atomic(to) as temporary:
        temporary.write_text(json.dumps(content.model_dump(), indent=1, sort_keys=True) + "\n", "utf-8")
    return Answer(f"{to}: {len(content.artefacts)} artefacts")


def _in_short(found: Comparison, arguments: str) -> Answer:
    """Whether a tree gives the numbers of a lock, in one line."""
    details = f"`python -m workflow_scripts lock {arguments}` for details"
    if not found.differences:
        said = f"As published: {len(found.same)} artefacts have the contents of the lock."
    elif found.numbers or not found.compared:
        first = next((f", such as {cell}: {was} -> {now}" for cell, (was, now) in found.numbers.items()), "")
        counted = f"{len(found.numbers)} of {len(found.compared)} numbers" if found.compared else "artefacts"
        said = f"Not as published: {counted} differ{first}; {details}."
    else:
        where = ", as on another machine" if found.elsewhere else ""
        said = f"Same numbers as published; bytes differ{where}: {details}."
    return Answer(said, not found.differences, data={"numbers": found.numbers})


def _checked(found: Comparison, file: Path) -> Answer:
    return Answer(
        f"{len(found.same)} artefacts as in {file}, {len(found.differences)} not",
        not found.differences,
        [Rows("differences", found.differences), *found.elsewhere],
        {"equal": len(found.same)},
    )
