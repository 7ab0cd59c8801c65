"""Access to the Hugging Face Hub, with different errors for missing, forbidden and unreachable repositories.

Only HTTP 404 means that a repository, commit or file does not exist. Any other failure may be temporary, so it stops
the job and never becomes a gap.
"""

import errno
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Literal

from workflow_scripts.errors import MissingError, UnreachableError

Kind = Literal["dataset", "model"]

_SECONDS = 5
_LOCAL_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EPERM, errno.EROFS}


def find(repository: str, revision: str | None, kind: Kind) -> str | None:
    """Return a repository's commit, from one request with a short timeout; the libraries would try for half a minute.

    Returns:
        The commit; None if the Hub cannot be reached, but this machine has a copy of the commit.

    Raises:
        MissingError: if the repository or commit does not exist.
        UnreachableError: if the Hub cannot be reached, or denies access.
    """
    from huggingface_hub import HfApi  # slow to import, and needed only for this kind of source

    try:
        with reaching(f"hub:{repository}" + (f"@{revision}" if revision else "")):
            return str(HfApi().repo_info(repository, revision=revision, repo_type=kind, timeout=_SECONDS).sha)
    except UnreachableError:
        if revision is None or not snapshot(repository, revision, kind).is_dir():
            raise
        return None


def listing(repository: str, revision: str, kind: Kind) -> set[str]:
    """Return the names of a repository's files at a commit, from one request with a short timeout.

    Raises:
        MissingError: if the repository or commit does not exist.
        UnreachableError: if the Hub cannot be reached, or denies access.
    """
    from huggingface_hub import HfApi  # slow to import, and needed only for this kind of source

    hub = HfApi()
    info = hub.model_info if kind == "model" else hub.dataset_info
    with reaching(f"hub:{repository}@{revision}"):
        description = info(repository, revision=revision, timeout=_SECONDS)
    return {sibling.rfilename for sibling in description.siblings or ()}


def download(repository: str, revision: str, kind: Kind, patterns: list[str] | None = None) -> Path:
    """Download files of a repository at a commit, and return their folder.

    The client retries after temporary failures. Complete files are not downloaded again, and interrupted downloads
    continue.

    Args:
        repository: Name of the repository.
        revision: The commit.
        kind: Type of the repository.
        patterns: Patterns of file names; None for all files.

    Raises:
        MissingError: if the repository or commit does not exist.
        UnreachableError: if the Hub denies access or keeps failing, or if it cannot be reached and the local copy is
            incomplete.
    """
    from huggingface_hub import snapshot_download  # slow to import, and needed only for this kind of source

    commit = find(repository, revision, kind)
    with reaching(f"hub:{repository}@{revision}"):
        folder = snapshot_download(
            repository,
            repo_type=kind,
            revision=revision,
            allow_patterns=patterns,
            local_files_only=commit is None,
        )
    return Path(folder)


@contextmanager
def reaching(repository: str) -> Iterator[None]:
    """Turn every failed request to the Hub into a one-line error.

    Args:
        repository: The repository, for the message.

    Raises:
        MissingError: if it does not exist.
        UnreachableError: if the machine is offline, the host unknown or slow, the server fails, or access is denied.
    """
    from httpx2 import HTTPError

    try:
        yield
    except (OSError, HTTPError) as error:
        if isinstance(error, OSError) and error.errno in _LOCAL_ERRORS:
            raise
        # The client's own message always says only that a file is not in its cache.
        causes = [*_causes(error)]
        responses = [getattr(cause, "response", None) for cause in causes]
        status = next((response.status_code for response in responses if response is not None), None)
        message = (str(causes[-1]).splitlines() or [""])[0].rstrip(". ")
        problem = f"{repository}: {type(causes[-1]).__name__}: {message}"
        if status in (401, 403):
            advice = "not allowed: ask for access, then log in with hf auth login"
            if status == 401:  # the Hub's answer for names that do not exist, too
                advice += "; or correct its name"
            raise UnreachableError(f"{problem} ({advice})") from error
        if status == 404:
            raise MissingError(problem) from error
        raise UnreachableError(f"{problem} (not reached)") from error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes, including suppressed ones."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def snapshot(repository: str, revision: str, kind: Kind) -> Path:
    """Return the folder of a commit in the cache of the Hub's client; it may not exist."""
    from huggingface_hub.constants import HF_HUB_CACHE

    return Path(HF_HUB_CACHE, f"{kind}s--{repository.replace('/', '--')}", "snapshots", revision)


@contextmanager
def at_commit(revision: str, *, offline: bool) -> Iterator[None]:
    """Make ``datasets`` read only one commit inside the block, without network requests if ``offline``.

    If the Hub cannot be reached, the library uses, after half a minute, the newest local copy of a dataset, of any
    commit. Therefore each commit has its own cache folder.

    Args:
        revision: The commit.
        offline: Whether to read only copies on this machine.
    """
    import datasets  # slow to import
    from huggingface_hub import constants

    before = datasets.config.HF_DATASETS_CACHE, datasets.config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE
    datasets.config.HF_DATASETS_CACHE = Path(before[0], "commits", revision)
    datasets.config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE = before[1] or offline, before[2] or offline
    try:
        yield
    finally:
        datasets.config.HF_DATASETS_CACHE, datasets.config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE = before


@cache
def answers() -> bool:
    """Return whether the Hub answers one request, within a time limit that includes the resolution of its name."""
    from huggingface_hub.constants import ENDPOINT, HF_HUB_OFFLINE

    answered: list[bool] = []

    def ask() -> None:
        import requests

        with suppress(requests.RequestException):
            answered.append(requests.head(ENDPOINT, timeout=_SECONDS).status_code < 500)

    if not HF_HUB_OFFLINE:
        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(_SECONDS)
    return answered == [True]
