"""Plans of sources: the files or repositories from which datasets, encoders and word vectors would be read.

The plan is part of the settings of the job that reads a dataset or fetches an encoder (``data.sources``). The job
reruns if a file appears or changes, or if a source listed earlier becomes available. It does not rerun if its file
disappears, such as on an unmounted disk. The plan is the same before and after the job, which means that a finished
study stays finished.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import ValidationError

from workflow_scripts.data.hub import Kind, answers, listing, snapshot
from workflow_scripts.data.published import SHARDS, WEIGHTS, encoder_folder, files_of
from workflow_scripts.data.sources import Pin, Repository, SourcePlan
from workflow_scripts.errors import MissingError, UnreachableError
from workflow_scripts.graph.clone import is_in_job
from workflow_scripts.graph.notes import read_note, sha256_now, write_note
from workflow_scripts.graph.study import Study
from workflow_scripts.settings.extraction import LocalWords, PackagedWords
from workflow_scripts.settings.sources import (
    FileSource,
    HubEncoder,
    HubFiles,
    HubSource,
    LocalEncoder,
    LocalFiles,
    Packaged,
    PackageEncoder,
    PackageFiles,
    Pinned,
)

Words = LocalWords | PackagedWords
Source = FileSource | HubSource | LocalEncoder | PackageEncoder | HubEncoder | Words
"""A source of a dataset, an encoder or word vectors."""
S = TypeVar("S", bound=Source)

NOTES = Path(".snakemake/sources")
"""Folder below the working directory: the plans of the last run, for its jobs on other machines."""
_planned: dict[Path, SourcePlan] = {}
"""Plans that were computed in this process, by their note."""


class LocalSource(NamedTuple):
    """A source on this machine; its files need not exist."""

    source: LocalFiles | PackageFiles | LocalEncoder | PackageEncoder | Words
    folder: Path | None
    """Folder of the files; None without a data root, or without the package."""
    label: str
    """Prefix of the files' names in records."""
    files: Mapping[str, tuple[str, Pin]]
    """Files below the folder by the reader's role, with pinned hashes if they have any."""
    needed: frozenset[str]
    """Files without which the source is not available."""
    is_open: bool = False
    """Whether all files of the folder belong to the source."""

    @property
    def lacks(self) -> str:
        """Return why the source is unavailable; empty if all needed files exist."""
        if self.folder is None and isinstance(self.source, Packaged):
            return f"Python package {self.source.package} is not installed"
        if self.folder is None:
            return f"no data root is set for {' and '.join(sorted(self.needed))}"
        missing = next((file for file in sorted(self.needed) if not (self.folder / file).is_file()), None)
        if missing is None:
            return ""
        path = self.folder / missing
        return f"{path} is a folder" if path.is_dir() else f"{path} does not exist"

    def provided(self, recorded: Collection[str]) -> bool:
        """Return whether the files in a record come from this source."""
        if self.is_open:
            return bool(recorded) and all(file.startswith(self.label) for file in recorded)
        return {*recorded} == {f"{self.label}{file}" for file, _ in self.files.values()}

    def hashes(self) -> dict[str, str]:
        """Return the hashes of the files. A pinned file is not read here; the job verifies it."""
        folder = self.folder or Path()
        return {
            f"{self.label}{file}": pin if isinstance(pin, str) else sha256_now(folder / file)
            for file, pin in self.files.values()
            if pin or (folder / file).is_file()
        }

    def contents(self) -> tuple[Any, ...]:
        """Return how the files would be read, and their hashes by role, independent of their paths."""
        reading: tuple[Any, ...] = ()
        if isinstance(self.source, LocalFiles | PackageFiles):
            reading = (self.source.reader, self.source.options)
        hashes = self.hashes()
        return *reading, {role: hashes.get(f"{self.label}{file}") for role, (file, _) in self.files.items()}


def source_now(
    study: Study,
    artefact: str,
    sources: Iterable[Source],
    *,
    optional: bool = False,
    kind: Kind = "dataset",
) -> SourcePlan:
    """Return the source that the job of one artefact would read now; inside a job, the planned one.

    On a compute node there may be neither data nor network, and Snakemake rebuilds the graph there.

    Args:
        study: Study with results and settings.
        artefact: File or model folder below the study's results.
        sources: Configured sources of a dataset or an encoder.
        optional: Whether it may be a gap.
        kind: Kind of its repositories.
    """
    note, path = NOTES / study.folder / f"{artefact}.json", Path(study.folder, artefact)
    noted = _noted_plan(note)
    if is_in_job() and noted:
        return noted
    sources = list(sources)
    plan = planned_source(sources, recorded_files(path), study.data_root, optional=optional, kind=kind)
    if noted and plan.kind != "files" and not path.exists():
        # A failed job has deleted the artefact, which must not become a gap.
        plan = planned_source(sources, noted.files, study.data_root, optional=optional, kind=kind)
    if not is_in_job():
        _planned[note] = plan
    return plan


def _noted_plan(note: Path) -> SourcePlan | None:
    """Return the plan in a note; None if the note is missing or unreadable."""
    try:
        return SourcePlan.model_validate(read_note(note))
    except ValidationError:
        return None


def note_planned() -> None:
    """Record all plans when a run other than a dry run starts."""
    for note, plan in _planned.items():
        write_note(note, plan.model_dump_json())


def planned_source(
    sources: Iterable[Source],
    recorded: Mapping[str, str],
    data_root: Path | None,
    *,
    optional: bool,
    kind: Kind = "dataset",
) -> SourcePlan:
    """Return the source that would be read now.

    Args:
        sources: Configured sources of a dataset or an encoder.
        recorded: Files from which it was read before, with their hashes; empty if it was not.
        data_root: Folder of local data.
        optional: Whether it becomes a gap if only the Hub may have it, and the Hub lacks it or does not answer.
        kind: Kind of its repositories.
    """
    sources = list(sources)
    here = list(sources_here(sources, data_root))
    read = next((source for source in here if source.provided(recorded)), None)
    for source in here:
        if source is read:
            return SourcePlan(kind="files", files=dict(recorded) if source.lacks else source.hashes())
        if not source.lacks and not (read and not read.lacks and read.contents() == source.contents()):
            return SourcePlan(kind="files", files=source.hashes())
    on_hub = [source for source in sources if isinstance(source, Pinned)]
    if not on_hub:
        return SourcePlan(kind="none")
    prefixes = tuple(source.prefix.removesuffix("/") for source in on_hub)
    was_read = any(file.startswith(prefixes) for file in recorded)
    return SourcePlan(
        kind=_state_on_hub(on_hub, kind) if optional and not was_read else "hub",
        # All repositories, since only the job learns which one answers.
        repositories=tuple(Repository(name=source.repository, revision=source.revision) for source in on_hub),
    )


def _state_on_hub(on_hub: Iterable[Pinned], kind: Kind) -> Literal["hub", "unreachable", "absent"]:
    """Return "hub" if one of the repositories is or may be available, else why none is.

    Repositories without a revision are skipped. One that denies access counts as available: its job reports the reason.
    """
    pinned = [(source, source.revision) for source in on_hub if source.revision]
    if not pinned or may_be_had([source for source, _ in pinned], kind, ask=False):
        return "hub"
    if not answers():
        return "unreachable"
    return "hub" if any(_hub_has(source, revision, kind) for source, revision in pinned) else "absent"


@cache
def _listing(repository: str, revision: str, kind: Kind) -> set[str] | None:
    """Return the files of a repository; empty if it does not exist, None if this is unknown."""
    try:
        return listing(repository, revision, kind)
    except MissingError:
        return set()
    except UnreachableError:
        return None


def _hub_has(source: Pinned, revision: str, kind: Kind) -> bool:
    """Return whether the Hub has the files of a source; true if this is unknown."""
    files = _listing(source.repository, revision, kind)
    if files is None or isinstance(source, HubSource):
        return files != set()
    if isinstance(source, HubFiles):
        return {file.path for file in source.files.values()} <= files
    pins = source.sha256 if isinstance(source, HubEncoder) else None
    return {*pins} <= files if pins else any(Path(file).name in (WEIGHTS, SHARDS) for file in files)


def sources_read(plan: SourcePlan, sources: Sequence[S]) -> list[S]:
    """Return the configured sources in a plan; all of them if it contains none."""
    for source in sources:
        if any(here.provided(plan.files) for here in sources_here([source], None)):
            return [source]
    if plan.kind != "hub":
        return list(sources)
    return list(filter(_is_on_hub, sources)) or list(sources)


def _is_on_hub(source: Source) -> bool:
    return isinstance(source, Pinned)


def sources_here(sources: Iterable[Source], data_root: Path | None) -> Iterator[LocalSource]:
    """Yield the sources on this machine, in order."""
    for source in sources:
        if isinstance(source, LocalEncoder | PackageEncoder):
            yield _encoder_here(source, data_root)
        elif not isinstance(source, Pinned):
            files = {role: (file.path, file.sha256) for role, file in source.files.items()}
            needed = frozenset(file for file, _ in files.values())
            yield LocalSource(source, source.root(data_root), source.prefix, files, needed)


def _encoder_here(source: LocalEncoder | PackageEncoder, data_root: Path | None) -> LocalSource:
    root, label = source.root(data_root), f"{source.prefix}{source.path}/"
    folder = root / source.path if root else None
    if source.sha256:
        pinned: dict[str, tuple[str, Pin]] = {file: (file, pin) for file, pin in source.sha256.items()}
        return LocalSource(source, folder, label, pinned, frozenset(pinned))
    files = files_of(folder) if folder else []
    weights = [encoder_folder(folder) / name for name in (WEIGHTS, SHARDS)] if folder else []
    needed = next((file for file in files if folder and folder / file in weights), WEIGHTS)
    return LocalSource(
        source, folder, label, {file: (file, None) for file in files}, frozenset({needed}), is_open=True
    )


def may_be_had(on_hub: Iterable[Pinned], kind: Kind, *, ask: bool = True) -> bool:
    """Return whether the Hub's client has a copy of one of the repositories or, with ``ask``, the Hub answers."""
    pinned = ((source.repository, source.revision) for source in on_hub)
    copied = any(commit and snapshot(name, commit, kind).is_dir() for name, commit in pinned)
    return copied or (ask and answers())


def recorded_files(artefact: Path) -> dict[str, str]:
    """Return the external sources in an artefact's record, with their hashes.

    Args:
        artefact: A file or model folder below results.

    Returns:
        Empty if the artefact was never made, is a gap, or cannot be read.
    """
    if not artefact.exists():
        return {}
    from workflow_scripts.provenance.artefacts import read_record  # slow to import

    try:
        record = read_record(artefact)
    except (OSError, ValueError, KeyError):  # the job that reads the file reports the error
        return {}
    return {source.path: source.sha256 for source in record.sources} if record else {}
