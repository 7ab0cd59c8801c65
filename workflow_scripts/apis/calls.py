"""Network calls that may fail: which failures are temporary, when to retry, and how to keep keys out of messages.

There are three kinds of failure. After a ``Transient`` one (429, 5xx, resets, timeouts, garbled answers), the call is
retried a limited number of times. ``Refused`` concerns a single request, which is counted as failed. An ``ApiError``
affects all further requests (a wrong key, an exhausted quota) and ends the job at once.
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

from workflow_scripts.config import Settings
from workflow_scripts.errors import ApiError

T = TypeVar("T")
_QUOTA = re.compile(
    r"insufficient[_ ]quota|quota (is |was )?(exceeded|exhausted)|exceeded your (current )?quota|insufficient balance",
    re.IGNORECASE,
)
_LOOKS_LIKE_A_KEY = re.compile(r"\b(sk|key|Bearer)[-_ ][A-Za-z0-9_\-]{8,}")
_SHOWN = 200  # characters of a server's message


class Calls(Settings):
    """How an API is called."""

    timeout_seconds: float = Field(gt=0, description="Longest silence of the server.")
    attempts: int = Field(ge=1, description="Attempts at one request, including the first.")
    first_wait_seconds: float = Field(
        ge=0, description="Upper limit of the random wait before the second attempt; doubles each time."
    )
    longest_wait_seconds: float = Field(
        gt=0, description="Longest wait between attempts; a server that asks for more ends the job."
    )
    per_second: float | None = Field(
        gt=0, description="Most requests per second from one job; null: no limit."
    )


class Transient(Exception):  # noqa: N818  (a state of the server)
    """A failure that may be temporary."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unusable(Transient):
    """An answer without usable content; after the last attempt, the request counts as refused."""


class Refused(Exception):  # noqa: N818  (an answer, if an unwelcome one)
    """The server will not answer this one request."""


def key_from(variable: str | None, place: str) -> str | None:
    """The API key from the environment; None for an API that needs none.

    Raises:
        ApiError: if the variable is not set, or holds what no key can: a client's own error might show it.
    """
    if variable is None:
        return None
    if key := os.environ.get(variable, "").strip():
        if re.search(r"[^!-~]", key):
            found = "holds a space, a line break or a letter that no key has"
            raise ApiError(f"{place}: environment variable {variable} {found}. Copy the key again.")
        return key
    raise ApiError(f"{place}: environment variable {variable} is not set. Set it to the key.")


def redacted(text: str, key: str | None) -> str:
    """``text`` on one line, truncated, without the key or anything like one: servers echo keys in errors."""
    line = " ".join(text.split())
    if key:
        line = line.replace(key, "[key]")
    return _LOOKS_LIKE_A_KEY.sub("[key]", line)[:_SHOWN]


def raise_for_status(status: int, headers: Mapping[str, str], message: str, place: str) -> None:
    """Raise the kind of failure that an HTTP status means; a status below 400 is no failure.

    Args:
        status: HTTP status.
        headers: Headers of the answer; Retry-After is respected.
        message: The server's message, redacted.
        place: Block of the configuration, for the error message.
    """
    if status < 400:
        return
    said = f"{place}: HTTP {status}{f' ({message})' if message else ''}"
    if status in (401, 403):
        raise ApiError(f"{said}. The key is wrong or missing. Correct its environment variable.")
    if status == 402 or _QUOTA.search(message):
        raise ApiError(f"{said}. The quota is used up; finished answers are kept. Top it up and run again.")
    if status in (408, 409, 429) or status >= 500:
        raise Transient(f"HTTP {status}", _retry_after(headers.get("Retry-After")))
    raise Refused(said)


def _retry_after(header: str | None) -> float | None:
    """Seconds that a server asks to wait, from a header with a number of seconds or a date."""
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
    """Makes calls as configured: limits their rate, and retries them after transient failures."""

    def __init__(self, calls: Calls, place: str) -> None:
        """``place`` is the block of the configuration, for error messages."""
        self._calls = calls
        self._place = place
        self._free_at = 0.0
        self._backoff = wait_random_exponential(calls.first_wait_seconds, calls.longest_wait_seconds)

    def call(self, ask: Callable[[], T]) -> T:
        """The result of the first attempt at ``ask`` that succeeds.

        Raises:
            Refused: if ``ask`` raises it, or the last attempt gives an unusable answer.
            ApiError: if ``ask`` raises it, or the last attempt fails.
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
            f"{self._place}: {found}. Finished answers are kept; run again when the server is back."
        ) from None
