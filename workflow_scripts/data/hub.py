"""The Hugging Face Hub, which may be out of reach."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx2

from workflow_scripts.errors import MissingError


@contextmanager
def reaching(place: str) -> Iterator[None]:
    """Turn every way in which the Hub can fail to answer into one line.

    Args:
        place: What was asked for, as the message names it.

    Raises:
        MissingError: offline, unknown host, no such repository or commit, or not in the cache.
    """
    try:
        yield
    except (OSError, ValueError, httpx2.HTTPError) as error:
        first_line = (str(error).splitlines() or [""])[0].rstrip(".")
        raise MissingError(f"{place}: {type(error).__name__}: {first_line}") from error
