"""Access to the Hugging Face Hub: what is not there, what may not be read, and what cannot be reached are three things.

Only a definite answer, HTTP 404 or an empty repository, says that something is not there. Anything else may be
otherwise tomorrow, so it stops a job and never becomes a gap.
"""

import errno
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Literal, TypeVar

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from workflow_scripts.errors import DataError, MissingError, UnreachableError

T = TypeVar("T")
Kind = Literal["dataset", "model"]

_SECONDS = 5
_ATTEMPTS = 4
_FIRST_WAIT_SECONDS = 2.0  # then twice that, and so on
_NOT_ALLOWED = (401, 403)
_NOT_THERE = 404
_SERVER_ERRORS = 500
_OF_THIS_MACHINE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EPERM, errno.EROFS}


def find(repository: str, revision: str | None, kind: Kind) -> str | None:
    """Ask once, for a few seconds, whether a repository has a commit; the libraries would go on for half a minute.

    Returns:
        The commit; None where the Hub cannot be asked, but a copy of this commit is on this machine.

    Raises:
        MissingError: no such repository or commit.
        UnreachableError: nobody answers, or this user may not read it.
    """
    from huggingface_hub import HfApi  # slow to import, and needed only for this kind of source

    try:
        with reaching(f"hub:{repository}" + (f"@{revision}" if revision else "")):
            found = HfApi().repo_info(repository, revision=revision, repo_type=kind, timeout=_SECONDS)
            return str(found.sha)
    except UnreachableError:
        if revision is None or not snapshot(repository, revision, kind).is_dir():
            raise
        return None


def download(repository: str, revision: str | None, kind: Kind, patterns: list[str]) -> Path:
    """The folder with files of a repository at a commit, got ``persistently``.

    Args:
        repository: Its name.
        revision: The commit.
        kind: Of the repository.
        patterns: Of the names of the files.

    Raises:
        MissingError: no such repository or commit.
        UnreachableError: it cannot be asked and not all is here, breaks off again and again, or may not be read.
        DataError: no commit is given, and what the newest is.
    """
    from huggingface_hub import snapshot_download  # slow to import, and needed only for this kind of source

    newest = find(repository, revision, kind)
    if revision is None:
        found = f"hub:{repository}: no revision is pinned; the Hub has {newest}"
        raise DataError(f"{found}. Write it into the block.")

    def get() -> str:
        with reaching(f"hub:{repository}@{revision}"):
            return snapshot_download(
                repository,
                repo_type=kind,
                revision=revision,
                allow_patterns=patterns,
                local_files_only=newest is None,
            )

    return Path(persistently(get) if newest else get())


@contextmanager
def reaching(place: str) -> Iterator[None]:
    """Turn every failure to get something from the Hub into a one-line error.

    Args:
        place: What is requested, for the message.

    Raises:
        MissingError: the Hub says that it is not there.
        UnreachableError: offline, unknown host, timeout, trouble on the server, or no right to read it.
        DataError: the request makes no sense, such as one for a split that a dataset does not have.
    """
    from httpx2 import HTTPError

    try:
        yield
    except (OSError, ValueError, HTTPError) as error:
        if getattr(error, "errno", None) in _OF_THIS_MACHINE:
            raise
        raise _verdict(place, error) from error


def persistently(get: Callable[[], T]) -> T:
    """What ``get`` gets from a Hub that has just answered, tried a few times.

    Files that have come are not asked for again. Within a file, the client goes on where a connection broke off.

    Raises:
        MissingError, UnreachableError, DataError: of the last attempt, as ``reaching`` raises them within ``get``.
    """
    attempts = Retrying(
        retry=retry_if_exception(
            lambda error: isinstance(error, UnreachableError) and "(not reached)" in str(error)
        ),
        stop=stop_after_attempt(_ATTEMPTS),
        wait=wait_exponential(_FIRST_WAIT_SECONDS),
        reraise=True,
    )
    result: T = attempts(get)
    return result


def _verdict(place: str, error: Exception) -> DataError:
    first_line = (str(error).splitlines() or [""])[0].rstrip(". ")
    found = f"{place}: {type(error).__name__}: {first_line}"
    behind = list(_causes(error))[-1]  # the client says that a file is not in its cache, whatever the reason
    if behind is not error and str(behind):
        found += f", because of {type(behind).__name__}: {str(behind).splitlines()[0].rstrip('. ')}"
    statuses = [_status(cause) for cause in _causes(error)]
    first = next((status for status in statuses if status is not None), None)
    if {*_NOT_ALLOWED} & {*statuses} or "is a gated dataset" in first_line:
        return UnreachableError(f"{found} (not allowed: ask for access, then log in with hf auth login)")
    if first == _NOT_THERE or (first is None and isinstance(error, FileNotFoundError)):
        return MissingError(found)
    if first is None and isinstance(error, ValueError):
        return DataError(f"{found}. Correct the block.")
    return UnreachableError(f"{found} (not reached)")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and what lies behind it even where a library hides that."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _status(error: BaseException) -> int | None:
    """The status of an HTTP answer, 0 where there was none, None for an error that says nothing of the Hub."""
    from httpx2 import HTTPError
    from huggingface_hub.errors import LocalEntryNotFoundError

    if (response := getattr(error, "response", None)) is not None:
        return int(response.status_code)
    return (
        0 if isinstance(error, (HTTPError, ConnectionError, TimeoutError, LocalEntryNotFoundError)) else None
    )


def snapshot(repository: str, revision: str, kind: Kind) -> Path:
    """Where the Hub's client keeps one commit on this machine, if it has been downloaded."""
    from huggingface_hub.constants import HF_HUB_CACHE

    return Path(HF_HUB_CACHE, f"{kind}s--{repository.replace('/', '--')}", "snapshots", revision)


@contextmanager
def at_commit(revision: str, *, offline: bool) -> Iterator[None]:
    """Have ``datasets`` find what it reads inside the block by its commit, and ask nobody where nobody answers.

    When it cannot reach the Hub, it takes the newest copy of a dataset on this machine, whatever commit it was asked
    for, and only after half a minute. So each commit has a folder of its own, which holds no other's copies.

    Args:
        revision: The commit.
        offline: Whether only copies on this machine are to be read.
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
    """Whether the Hub answers at all: one request, and no more than a few seconds even where names are not resolved."""
    from huggingface_hub.constants import ENDPOINT, HF_HUB_OFFLINE

    found: list[bool] = []
    if not HF_HUB_OFFLINE:
        asking = threading.Thread(target=lambda: found.append(_answers(ENDPOINT)), daemon=True)
        asking.start()
        asking.join(_SECONDS)
    return found == [True]


def _answers(endpoint: str) -> bool:
    try:
        urllib.request.urlopen(urllib.request.Request(endpoint, method="HEAD"), timeout=_SECONDS).close()
    except urllib.error.HTTPError as error:
        return error.code < _SERVER_ERRORS
    except OSError:
        return False
    return True
