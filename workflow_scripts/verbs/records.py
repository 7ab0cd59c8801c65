"""Records below some folders as a graph of artefacts, and the comparison of records, for all verbs.

A model folder is named by the path of its record, as in other records.
"""

import os
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Literal, NamedTuple

from workflow_scripts.errors import (
    MADE_BELOW,
    DataError,
    advice,
    command_for,
    how_to_make,
    how_to_repair,
    place_of,
)
from workflow_scripts.graph.slices import flat
from workflow_scripts.provenance.artefacts import (
    CHECKSUMMED_SUFFIXES,
    RECORD_FILE,
    REPLACED,
    TEMPORARY,
    Trailer,
    content_identity,
    folder_faults,
    identity,
    read_record,
    read_trailer,
    verify_checksum,
)
from workflow_scripts.provenance.record import Input, Record, as_list, is_outside

REPORT = "report.html"
"""The last artefact of a study."""
LOCK_SUFFIX = ".lock.json"
ABSENT = "(absent)"
HASHES = ("code", "input", "source")
"""Sections of facts whose values are hashes of files."""
_RULE = re.compile(r"[a-z][a-z0-9_]*")
_CONTROL = re.compile(r"\\u00(0|1|7f|8|9)")  # control characters as escaped by JSON; a line feed is \n
_RESULTS = Path("results")
_MACHINE = {"python", "processor", "capability", "threads", "blas", "gpu"}

# One file


def relative_name(path: str | Path) -> str:
    """Return ``path`` as in records: relative to the working directory, without following links."""
    return Path(os.path.relpath(path)).as_posix()


def artefact_name(name: str, models: Container[str] | None = None) -> str:
    """Return the file with the record of ``name``: the record of its model folder, or the file itself.

    Args:
        name: Path of a file or folder.
        models: All records of model folders; by default those that exist.
    """
    records = (f"{folder}/{RECORD_FILE}" for folder in accumulate(name.split("/"), "{}/{}".format))
    return next(
        (file for file in records if (Path(file).is_file() if models is None else file in models)), name
    )


def record_at(path: Path) -> Record | None:
    """Return the record in an artefact; None for a file without one.

    Raises:
        DataError: if the file is missing, its record cannot be read, or this pipeline does not write such a record. A
            checksum proves that a file is intact, but not who wrote it.
    """
    try:
        record = read_record(path)
    except FileNotFoundError as error:
        raise missing_file(path) from error
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise DataError(f"{path}: damaged; its record cannot be read. {how_to_repair(path)}") from error
    if record is not None and not _is_safe(record):
        problem = "its record contains paths outside this folder, or control characters"
        raise DataError(f"{path}: {problem}, as no record of this pipeline does. {how_to_repair(path)}")
    return record


def missing_file(path: Path, problem: str = "no such file", target: Path | None = None) -> DataError:
    """Return the error of a missing file, with the command that makes it and, if no record lists it, similar names.

    For a folder with several artefacts, the error names one of them.

    Args:
        path: The path as it was given; a name without folder and suffix is that of a study.
        problem: The problem.
        target: The missing file, if it is not ``path``.
    """
    is_study = len(path.parts) == 1 and not path.suffix
    root, name = place_of(target or (_RESULTS / path if is_study else path))
    results = Path(os.path.relpath(root / _RESULTS))
    records = Records(results.glob("[!.]*/"), hashing=False)
    known = {*records.listed, *(os.path.relpath(file, root) for file in records.inspections)}
    for file in known & {name, f"{name}/{RECORD_FILE}"}:
        return DataError(f"{path}: {problem}. {how_to_make(root / file)}")
    inside = sorted(file for file in known if file.startswith(f"{name}/"))
    if target is None and (path.is_dir() or inside):
        number = len(inside)
        such = (
            f"Choose one of its {number} artefacts, such as {inside[0]}." if inside else "It has no artefact."
        )
        return DataError(f"{path}: a folder, not an artefact. {such}")
    remedy = _similar_to(root, Path(name), {*map(Path, known)})
    return DataError(f"{path}: {problem}, and no record below {results} lists one. {remedy}")


def _similar_to(root: Path, name: Path, known: Iterable[Path]) -> str:
    """Return the remedy for a file that no record lists: names next to the first unknown part of its path.

    Args:
        root: The working directory of its study.
        name: Its path there.
        known: Paths of other files there.
    """
    if name.parts[0] not in MADE_BELOW:
        return advice(str(name), sorted(map(str, known)))
    for folder in name.parents[:-1]:
        names = _names_in(root / folder) | {
            path.relative_to(folder).parts[0] for path in known if folder in path.parents
        }
        part, *_ = name.relative_to(folder).parts
        if part in names:
            break
        if names:
            # Tables all end in .parquet, so whole names would be similar.
            here = relative_name(root / folder)
            by_stem = {other.removesuffix(".parquet"): f"{here}/{other}" for other in sorted(names)}
            similar = advice(part.removesuffix(".parquet"), by_stem, by_stem.__getitem__)
            return f"{similar} Or make it: {command_for(root / name)}"
    return how_to_make(root / name)


def _names_in(folder: Path) -> set[str]:
    """Return the names in a folder, without hidden ones; none if it does not exist."""
    return {path.name for path in (folder.glob("[!.]*") if folder.is_dir() else ())}


def missing_study(folder: Path) -> DataError:
    """Return the error of a missing study, with the most similar name, and the command that makes it."""
    if folder.is_file():
        return DataError(f"{folder}: a file. Give the folder of a study, results/<study>.")
    names = sorted(study.name for study in _RESULTS.glob("[!.]*/"))
    choice = f"{advice(folder.name, names)} Or make it" if names else "Make it"
    return DataError(f"{folder}: no such study. {choice}: {command_for(_RESULTS / folder.name)}")


def _is_safe(record: Record) -> bool:
    read = (given.path for given in record.inner_files)
    names = map(Path, (*read, *record.outputs, *record.meaning, *record.files))
    inside = not any(name.is_absolute() or ".." in name.parts for name in names)
    return bool(inside and _RULE.fullmatch(record.rule) and not _CONTROL.search(record.to_json()))


def artefact_at(path: str | Path) -> tuple[Path, Record]:
    """Return the artefact at ``path``, or the record of the model folder that contains it, with its record.

    Raises:
        DataError: as ``record_at``, and if the file is missing or has no record.
    """
    given = relative_name(path)
    name = Path(artefact_name(given))
    if name != Path(given) and not Path(given).exists():
        raise missing_file(Path(path))
    if (record := record_at(name)) is None:
        root, target = place_of(name)
        known = Records((root / _RESULTS).glob("[!.]*/"), hashing=False).listed
        if target in known and Path(target).parts[0] in MADE_BELOW:
            problem = "another program has written it: its record is gone"
            raise DataError(f"{path}: {problem}. {how_to_repair(name)}")
        raise DataError(
            f"{path}: not an artefact: it has no record. Choose a file or model folder below results/."
        )
    return name, record


def job_name(rule: str, wildcards: Mapping[str, str]) -> str:
    """Return the name of a job: its rule and wildcards."""
    return f"{rule}({', '.join(f'{key}={value}' for key, value in wildcards.items())})"


Kind = Literal["changed", "missing", "foreign", "stale", "unlabelled"]
"""Faults of files, in the words of `verify`."""
State = Literal["as recorded", "rebuilt since", "damaged", "missing", "file", "source"]


Fault = tuple[str, Kind, str]
"""Path, kind of fault, and its description."""


class Inspection(NamedTuple):
    """Result of reading a file once."""

    trailer: Trailer | None = None
    record: Record | None = None
    """Record of the file; None if it is damaged."""
    faults: Sequence[Fault] = ()
    """Faults of the file and, for a model folder's record, of the files that it describes."""


def is_checksummed(path: str) -> bool:
    """Return whether an artefact of this name has a checksum, if it is not part of a model folder."""
    return Path(path).suffix in CHECKSUMMED_SUFFIXES or Path(path).name == RECORD_FILE


def _inspect(name: str, hashing: bool) -> Inspection:
    """Return the seal, record and faults of an artefact; without ``hashing``, stored checksums are trusted."""
    path, record, faults = Path(name), None, list[Fault]()
    trailer = read_trailer(path) if is_checksummed(name) and artefact_name(name) == name else None
    if trailer is None:
        return Inspection()
    try:
        if hashing:
            verify_checksum(path)
    except DataError:
        return Inspection(
            trailer, faults=[(name, "changed", f"checksum {trailer.checksum[:12]} does not match")]
        )
    with suppress(DataError):  # intact, but written by another version of this pipeline
        record = record_at(path)
    if hashing and record and path.name == RECORD_FILE:
        of_parts = folder_faults(path.parent, record)
        faults += [((path.parent / part).as_posix(), kind, words) for part, kind, words in of_parts]
    return Inspection(trailer, record, faults)


def is_intact(path: Path) -> bool:
    """Return whether an artefact and, for a model folder's record, the files of the folder are as they were written."""
    return not _inspect(path.as_posix(), hashing=True).faults


def present_state(name: str, sha256: str) -> tuple[State, Record | None]:
    """Return the state of a file or source that had this hash when it was read, and its record if it can be read."""
    path, record = Path(name), None
    if is_outside(name) or not path.exists():
        return "source" if is_outside(name) else "missing", None
    try:
        record = record_at(path)
        same = identity(path) == sha256
    except DataError:
        return "damaged", record
    return ("as recorded" if record else "file") if same else "rebuilt since", record


# Facts

Facts = Mapping[str, Mapping[str, object]]
"""Entries of each section, such as setting or code."""


class Change(NamedTuple):
    """An entry that differs between two records."""

    section: str
    key: str
    a: object
    b: object


def facts(record: Record) -> Facts:
    """Return the compared entries of a record by section; machine, commit and labels come last."""
    return {
        "rule": {"": record.rule},
        "wildcard": record.wildcards,
        "setting": flat(record.settings),
        "code": record.meaning,
        "package": record.packages,
        "input": {name: given.sha256 for name, given in named_inputs(record).items()},
        "machine": record.origin.model_dump(include=_MACHINE),
        "commit": {"": record.origin.commit},
        "uncommitted changes": {"": record.origin.dirty},
        "label": dict.fromkeys(map(str, record.labels), "present"),
    }


def compare(a: Facts, b: Facts) -> list[Change]:
    """Return each entry that differs or that one side lacks, section by section."""
    return [
        Change(section, key, left, right)
        for section in a
        for key in sorted(a[section].keys() | b[section].keys())
        if (left := a[section].get(key, ABSENT)) != (right := b[section].get(key, ABSENT))
    ]


def compare_artefacts(a: Path, b: Path) -> tuple[bool, list[Change]]:
    """Return whether two artefacts have equal contents, and the differences between their records.

    Contents are hashed again, because a file with a renewed checksum may have a wrong identity.
    """
    sides = [artefact_at(path) for path in (a, b)]
    (_, was), (_, now) = sides
    return len({content_identity(path, ()) for path, _ in sides}) == 1, compare(facts(was), facts(now))


def named_inputs(record: Record) -> dict[str, Input]:
    """Return each input by a name: its role, and its path in the study if the role may have several."""
    return {
        f"{role}/{_path_in_study(file.path)}" if isinstance(given, list) else role: file
        for role, given in record.inputs.items()
        for file in as_list(given)
    }


def _path_in_study(path: str) -> str:
    return re.sub(r"^results/[^/]+/", "", path)


# All files of some folders


def study_folder(named: str) -> Path:
    """Return the folder of a study, given as a folder, such as results/demo, or as the study's name."""
    folder = Path(named)
    return _RESULTS / folder if not folder.exists() and (_RESULTS / folder).is_dir() else folder


def audited_studies(named: Iterable[Path]) -> list[Path]:
    """Return the folders to audit: the named ones, or all below ``results``.

    Raises:
        DataError: if a folder is missing, or not a study of the working directory, to which all paths of records are
            relative; or if ``results`` is empty, since nothing would be checked.
    """
    here = sorted(_RESULTS.glob("[!.]*/"))  # the cache begins with a dot
    studies = list(named) or here
    for folder in studies or [_RESULTS]:
        if not folder.is_dir() or not studies or folder.absolute().parent != _RESULTS.absolute():
            raise missing_study(folder)
    return studies


class Records:
    """Artefacts below some folders, with the connections in their records."""

    def __init__(self, folders: Iterable[Path], *, hashing: bool = True) -> None:
        """List the files below ``folders``, following links, and read each once.

        Args:
            folders: Folders of results, such as a study.
            hashing: Whether to look for damage, or to trust stored checksums and identities.
        """
        self.strays: list[Fault] = []
        """Faults of files that are left by unfinished jobs or are unreadable."""
        self.folders = [relative_name(folder) for folder in folders]
        files = [name for folder in self.folders for name in self._files(Path(folder))]
        self.inspections = {name: _inspect(name, hashing) for name in files}
        self.by_file = {
            name: inspection.record
            for name, inspection in sorted(self.inspections.items())
            if inspection.record
        }
        """Records of intact files, by artefact."""
        self.readers = defaultdict[str, set[str]](set)
        """Artefacts made directly from a file or source, by its path."""
        self.listed = defaultdict[str, set[str]](set)
        """Artefacts whose records list a file, existing or missing, as input or output, by its path."""
        for name, record in self.by_file.items():
            for _, given in record.listed_inputs():
                self.readers[given.path].add(name)
            for path in (*(given.path for given in record.inner_files), *record.outputs):
                self.listed[path].add(name)

    def _files(self, folder: Path) -> Iterator[str]:
        """Yield the files below a folder except checkpoints, which are checked by the jobs that resume from them."""
        for path in sorted(folder.iterdir()):
            if path.name.startswith(".") and path.suffix in (TEMPORARY, REPLACED):
                left = "left by a killed job, or being written"
                self.strays.append((path.as_posix(), "foreign", left))
            elif path.is_dir():
                if path.suffix != ".checkpoints":
                    yield from self._files(path)
            elif not path.is_file():
                unknown = "neither a file nor a folder, such as a broken link"
                self.strays.append((path.as_posix(), "foreign", unknown))
            elif not path.name.endswith(LOCK_SUFFIX):  # written by `lock`
                yield path.as_posix()

    @cached_property
    def _models(self) -> set[str]:
        """Return the records of model folders: existing ones, even if damaged, and those that a record lists."""
        return {name for name in {*self.inspections, *self.listed} if Path(name).name == RECORD_FILE}

    def artefact_name(self, path: str) -> str:
        """Return the artefact at ``path``, or the record of the model folder that contains it, existing or missing."""
        return artefact_name(path, self._models)

    @cached_property
    def damage(self) -> dict[str, tuple[Kind, str]]:
        """Return the files that are not as written, by their checksums or the records of their model folders.

        Returns:
            The kind of fault and its description, by file.
        """
        faults = {
            path: (kind, words)
            for inspection in self.inspections.values()
            for path, kind, words in inspection.faults
        }
        for name in (*self.listed, *(f"{folder}/{REPORT}" for folder in self.folders)):
            here = self.inspections.get(name)
            if here and here.trailer is None and is_checksummed(name) and self.artefact_name(name) == name:
                faults[name] = "changed", "its checksum is missing"
        return faults

    def made_from(self, path: str) -> set[str]:
        """Return all artefacts made from ``path``, a file or a source as in records, directly or indirectly."""
        artefacts: set[str] = set()
        pending = {self.artefact_name(path)}
        while pending:
            pending = set().union(*(self.readers.get(name, ()) for name in pending)) - artefacts
            artefacts |= pending
        return artefacts
