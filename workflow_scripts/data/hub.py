"""Access to the Hugging Face Hub, which may be unavailable."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx2

from workflow_scripts.errors import MissingError


@contextmanager
def reaching(place: str) -> Iterator[None]:
    """Turn every failure to reach the Hub into a one-line error.

    Args:
        place: What is requested, for the message.

    Raises:
        MissingError: offline, unknown host, no such repository or commit, or not in the cache.
    """
    try:
        yield
    except (OSError, ValueError, httpx2.HTTPError) as error:
        first_line = (str(error).splitlines() or [""])[0].rstrip(".")
        raise MissingError(f"{place}: {type(error).__name__}: {first_line}") from error
