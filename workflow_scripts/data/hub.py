"""Access to the Hugging Face Hub: what is not there, what may not be read, and what cannot be reached are three things.

Only a definite answer, HTTP 404, says that something is not there. Anything else may be different tomorrow, so it stops
a job and never becomes a gap.
"""

import errno
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Literal

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from workflow_scripts.errors import DataError, MissingError, UnreachableError

Kind = Literal["dataset", "model"]

_SECONDS = 5
_ATTEMPTS = 4
_FIRST_WAIT_SECONDS = 2.0  # then twice that, and so on
_OF_THIS_MACHINE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EPERM, errno.EROFS}


class NotAllowedError(UnreachableError):
    """The Hub answers, and this user may not read what it has."""


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


def download(repository: str, revision: str | None, kind: Kind, patterns: list[str] | None = None) -> Path:
    """The folder with files of a repository at a commit, tried a few times where the Hub has just answered.

    Files that have come are not asked for again. Within a file, the client goes on where a connection broke off.

    Args:
        repository: Its name.
        revision: The commit.
        kind: Whether it holds a dataset or a model.
        patterns: Which files, by patterns of their names; None for all.

    Raises:
        MissingError: no such repository or commit.
        UnreachableError: it cannot be asked and not all is here, breaks off again and again, or may not be read.
        DataError: no commit is given; the message names the newest.
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

    attempts = Retrying(
        retry=retry_if_exception(lambda error: type(error) is UnreachableError),
        stop=stop_after_attempt(_ATTEMPTS if newest else 1),
        wait=wait_exponential(_FIRST_WAIT_SECONDS),
        reraise=True,
    )
    return Path(attempts(get))


@contextmanager
def reaching(place: str) -> Iterator[None]:
    """Turn every failure to get something from the Hub into a one-line error.

    Args:
        place: What is requested, for the message.

    Raises:
        MissingError: the Hub says that it is not there.
        UnreachableError: offline, unknown host, timeout, trouble on the server, or no right to read it.
    """
    from httpx2 import HTTPError

    try:
        yield
    except (OSError, HTTPError) as error:
        if getattr(error, "errno", None) in _OF_THIS_MACHINE:
            raise
        causes = [*_causes(error)]  # the client says that a file is not in its cache, whatever the reason
        responses = [getattr(cause, "response", None) for cause in causes]
        status = next((response.status_code for response in responses if response is not None), None)
        said = (str(causes[-1]).splitlines() or [""])[0].rstrip(". ")
        found = f"{place}: {type(causes[-1]).__name__}: {said}"
        if status in (401, 403):
            advice = "not allowed: ask for access, then log in with hf auth login"
            raise NotAllowedError(f"{found} ({advice})") from error
        if status == 404:
            raise MissingError(found) from error
        raise UnreachableError(f"{found} (not reached)") from error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and its causes, also those that a library hides."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


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

    def ask() -> None:
        import requests

        with suppress(requests.RequestException):
            found.append(requests.head(ENDPOINT, timeout=_SECONDS).status_code < 500)

    if not HF_HUB_OFFLINE:
        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        asking.join(_SECONDS)
    return found == [True]
