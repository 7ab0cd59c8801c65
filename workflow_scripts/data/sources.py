"""Sources of datasets and encoders: files on this machine and repositories of the Hub, pinned by hashes and commits.

A dataset or encoder lists its sources, best first. The first available one is read; those on this machine precede the
Hub. A ``SourcePlan`` contains the files with their hashes, or the repositories with their commits. It is made during
planning and is a setting of the job, which enforces it: a file that appears or changes is a changed setting.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field

from workflow_scripts.data.hub import Kind, download, find
from workflow_scripts.errors import DataError, MissingError, UnreachableError
from workflow_scripts.provenance.record import Input, sha256_of
from workflow_scripts.settings.base import Settings
from workflow_scripts.settings.sources import (
    EncoderSource,
    File,
    FileSource,
    HubEncoder,
    HubSource,
    LocalEncoder,
    PackageEncoder,
    Pinned,
)

S = TypeVar("S", bound=FileSource | HubSource | EncoderSource)
T = TypeVar("T")

Pin = str | Sequence[str] | None
"""The accepted hash or hashes of a file; None if the file is not pinned."""


class Repository(Settings):
    """A repository of the Hub at a commit."""

    name: str
    revision: str | None = Field(description="Commit; null if the configuration has none.")

    def __str__(self) -> str:
        """Return the name, and the commit if one is set."""
        return f"hub:{self.name}@{self.revision}" if self.revision else f"hub:{self.name}"


class SourcePlan(Settings):
    """The source that a job must read, as found during planning."""

    kind: Literal["files", "hub", "unreachable", "absent", "none"] = Field(
        description="State of the source. files: on this machine; hub: the Hub may have it; unreachable or "
        "absent: only the Hub may have it, which does not answer or lacks it, and it is optional; "
        "none: no file exists and no repository is configured."
    )
    files: dict[str, str] = Field(default={}, description="sha256 of each file by its name in records.")
    repositories: tuple[Repository, ...] = ()

    def __str__(self) -> str:
        """Return the files with their hashes, or the repositories with their commits, in words."""
        if self.kind == "none":
            return "none"
        if self.kind == "files":
            return "; ".join(f"{name} sha256:{sha256}" for name, sha256 in sorted(self.files.items()))
        repositories = " or ".join(
            f"{repository}{'' if repository.revision else ' (no revision set)'}"
            for repository in self.repositories
        )
        return {"hub": "", "unreachable": "not reached: ", "absent": "absent: "}[self.kind] + repositories


def accepted(pin: Pin) -> Sequence[str]:
    """Return the accepted hashes of a file; empty if it is not pinned."""
    return [pin] if isinstance(pin, str) else pin or []


def check_planned(path: str, plan: SourcePlan, read: Iterable[Input]) -> None:
    """Raise DataError unless a job has read its planned source.

    Raises:
        DataError: if another source was read, or a file has changed since.
    """
    hashes = {file.path: file.sha256 for file in read}
    if plan.kind == "files" and hashes != plan.files:
        actual = SourcePlan(kind="files" if hashes else "none", files=hashes)
        raise DataError(f"{path}: read from {actual}, but planned with {plan}. Run it again.")


def expected(source: Any) -> str:
    """Return a source in words: its files with their pinned hashes, or its repository and commit."""
    if isinstance(source, HubSource | HubEncoder):
        return source.prefix.removesuffix("/").removesuffix("@None")
    if isinstance(source, LocalEncoder | PackageEncoder):
        return f"{source.prefix}{source.path}"
    files = sorted((file.path, promised(file)) for file in source.files.values())
    return " and ".join(f"{source.prefix}{path} ({promised})" for path, promised in files)


def promised(file: File) -> str:
    """Return the accepted hashes of a file in words."""
    return f"sha256 {' or '.join(accepted(file.sha256)) or 'not pinned'}"


def first_available(path: str, sources: Sequence[S], get: Callable[[S], T], remedy: str) -> T:
    """Return the result of ``get`` for the first available source; sources on this machine precede the Hub.

    Raises:
        MissingError: if no source is available; the message ends with ``remedy``.
        UnreachableError: if no source is available, and at least one could not be reached.
    """
    tried: list[DataError] = []
    for source in sorted(sources, key=lambda source: isinstance(source, Pinned)):
        try:
            return get(source)
        except (MissingError, UnreachableError) as error:
            tried.append(error)
    problem = f"{path}: no source is available: {'; '.join(map(str, tried))}."
    if any(isinstance(error, UnreachableError) for error in tried):
        raise UnreachableError(f"{problem} {remedy}")
    raise MissingError(problem)


def as_pinned(file: Path, label: str, pin: Pin, advice: str) -> Input:
    """Return a file as an input, with its label and hash.

    Raises:
        DataError: if the list of pinned hashes is empty, or the file has another one; that message ends with
            ``advice``.
    """
    sha256, pinned = sha256_of(file) if file.is_file() else "missing", accepted(pin)
    if pin is not None and not pinned:
        raise DataError(f"{file}: sha256: an empty list pins nothing. Set it to {sha256}, or to null.")
    if pinned and sha256 not in pinned:
        raise DataError(f"{file}: sha256 {sha256}; pinned {' or '.join(pinned)}. {advice}")
    return Input(path=label, sha256=sha256)


def source_folder(source: Any, data_root: Path | None, kind: Kind, files: list[str] | None) -> Path:
    """Return the folder that contains the files of a source; all files of a repository if ``files`` is None.

    Raises:
        MissingError: if no data root is set, or the package, repository or commit does not exist.
        UnreachableError: if the Hub cannot be reached.
        DataError: if a repository has no revision; the message contains the line that pins its newest commit.
    """
    if isinstance(source, Pinned):
        if source.revision:
            return download(source.repository, source.revision, kind, files)
        newest = find(source.repository, None, kind)
        problem = f"hub:{source.repository}: no revision is pinned; the Hub has {newest}"
        raise DataError(f"{problem}. Add to its block: {source.pinned_at(str(newest))}")
    if root := source.root(data_root):
        return Path(root)
    if source.kind == "package":
        raise MissingError(f"Python package {source.package} is not installed")
    raise MissingError("no data root is set (setting data_root, or environment variable SEMBLANCE_DATA)")
