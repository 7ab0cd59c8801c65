"""Calls over the network that may fail: which failures pass, how often and when to ask again, secrets kept out.

Three kinds of failure are told apart. ``Transient`` ones (429, 5xx, resets, timeouts, garbled answers) are
asked again a bounded number of times. ``Refused`` concerns one request, which is counted as failed. An
``ApiError`` concerns all that would follow (a wrong key, an exhausted quota) and ends the job at once.
"""

import os
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NoReturn, TypeVar

from pydantic import Field
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_random_exponential

from workflow_scripts.config import Slice
from workflow_scripts.errors import ApiError

T = TypeVar("T")
_QUOTA = re.compile(
    r"insufficient[_ ]quota|quota (is |was )?(exceeded|exhausted)|exceeded your (current )?quota|insufficient balance",
    re.IGNORECASE,
)
_LOOKS_LIKE_A_KEY = re.compile(r"\b(sk|key|Bearer)[-_ ][A-Za-z0-9_\-]{8,}")
_SHOWN = 200  # characters of a server's message


class Calls(Slice):
    """How an API is called."""

    timeout_seconds: float = Field(gt=0, description="Longest silence of the server.")
    attempts: int = Field(ge=1, description="Attempts at one request, the first included.")
    first_wait_seconds: float = Field(
        ge=0, description="Before the second attempt at most; doubles with each, drawn at random below."
    )
    longest_wait_seconds: float = Field(
        gt=0, description="Between two attempts; a server that asks for more ends the job."
    )
    per_second: float | None = Field(
        gt=0, description="Requests a second of one job at most; null: no limit."
    )


class Transient(Exception):  # noqa: N818  (a state of the server)
    """A failure that may pass."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unusable(Transient):
    """An answer that holds nothing to use; after the last attempt the one request counts as refused."""


class Refused(Exception):  # noqa: N818  (an answer, if an unwelcome one)
    """The server will not answer this one request."""


def key_from(variable: str | None, place: str) -> str | None:
    """The API key that the environment holds; None where an API needs none.

    Raises:
        ApiError: if the variable is not set.
    """
    if variable is None:
        return None
    if key := os.environ.get(variable, "").strip():
        return key
    raise ApiError(f"{place}: environment variable {variable} is not set. Put the key there, nowhere else.")


def redacted(text: str, key: str | None) -> str:
    """``text`` on one line, cut, with the key and what looks like one taken out: servers echo keys in errors."""
    line = " ".join(text.split())
    if key:
        line = line.replace(key, "[key]")
    return _LOOKS_LIKE_A_KEY.sub("[key]", line)[:_SHOWN]


def raise_for_status(status: int, headers: Mapping[str, str], message: str, place: str) -> None:
    """Sort an HTTP status into the kinds of failure; a status below 400 is none.

    Args:
        status: HTTP status.
        headers: Of the answer; Retry-After is heeded.
        message: What the server says, redacted.
        place: Block of the configuration to name.
    """
    if status < 400:
        return
    said = f"{place}: HTTP {status}{f' ({message})' if message else ''}"
    if status in (401, 403):
        raise ApiError(f"{said}. The key is wrong or missing; nothing more is asked. Mend its variable.")
    if status == 402 or _QUOTA.search(message):
        raise ApiError(f"{said}. The quota is used up; finished answers are kept. Top it up and run again.")
    if status in (408, 409, 429) or status >= 500:
        raise Transient(f"HTTP {status}", _retry_after(headers.get("Retry-After")))
    raise Refused(said)


def _retry_after(header: str | None) -> float | None:
    """Seconds that a server asks to wait, given as such or as a date."""
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None


class Caller:
    """Makes calls as the settings say: spaced in time, asked again while failures may pass."""

    def __init__(self, calls: Calls, place: str) -> None:
        """``place`` is the block of the configuration that messages name."""
        self._calls = calls
        self._place = place
        self._free_at = 0.0
        self._backoff = wait_random_exponential(calls.first_wait_seconds, calls.longest_wait_seconds)

    def call(self, ask: Callable[[], T]) -> T:
        """The result of ``ask``, at the latest of its last attempt.

        Raises:
            Refused: as ``ask`` does; or if the last answer was unusable too.
            ApiError: as ``ask`` does; or if the last attempt failed too.
        """
        attempts = Retrying(
            stop=stop_after_attempt(self._calls.attempts),
            wait=self._wait,
            retry=retry_if_exception_type(Transient),
            retry_error_callback=self._give_up,
        )
        result: T = attempts(self._spaced, ask)
        return result

    def _spaced(self, ask: Callable[[], T]) -> T:
        if self._calls.per_second:
            now = time.monotonic()
            time.sleep(max(0.0, self._free_at - now))
            self._free_at = max(now, self._free_at) + 1 / self._calls.per_second
        return ask()

    def _wait(self, state: RetryCallState) -> float:
        failure = state.outcome.exception() if state.outcome else None
        asked = failure.retry_after if isinstance(failure, Transient) else None
        longest = self._calls.longest_wait_seconds
        if asked is not None and asked > longest:
            found = f"the server asks to wait {asked:.0f} s, longer than longest_wait_seconds {longest:g}"
            raise ApiError(f"{self._place}: {found}. Finished answers are kept; run again later.") from None
        return self._backoff(state) if asked is None else asked

    def _give_up(self, state: RetryCallState) -> NoReturn:
        failure = state.outcome.exception() if state.outcome else None
        if isinstance(failure, Unusable):
            raise Refused(f"{self._place}: {failure}") from None
        found = f"{failure}, {state.attempt_number} attempts in a row"
        raise ApiError(
            f"{self._place}: {found}. Finished answers are kept; run again when it is back."
        ) from None
