"""Calls over the network: temporary failures, retries, and messages without keys.

There are three kinds of failure. A ``Transient`` one (429, 5xx, resets, timeouts) is retried a limited number of times,
and then ends the job. ``NoAnswer`` concerns a single request: the server refuses it, or sends no answer; then it is
retried too. An ``ApiError`` affects all further requests (a wrong key, an exhausted quota, a wrong address, a response
that never ends) and ends the job at once.
"""

import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from typing import Any, TypeVar
from urllib.parse import quote

import httpx2
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt
from tenacity.wait import wait_random_exponential

from workflow_scripts.apis.ledger import Ledger, Status
from workflow_scripts.errors import ApiError
from workflow_scripts.settings.apis import Calls

_QUOTA = re.compile(
    r"insufficient[_ ]quota|quota (is |was )?(exceeded|exhausted)|exceeded your (current )?quota|insufficient balance",
    re.IGNORECASE,
)
_LOOKS_LIKE_A_KEY = re.compile(r"\b(sk|key|Bearer)[-_ ][A-Za-z0-9_\-]{8,}")
_TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^<>]*>", re.IGNORECASE | re.DOTALL)
_MAX_SHOWN = 200  # characters of a server's message
LONGEST_ANSWER = 8 << 20  # bytes; the rest of an answer is not read
_SENT_HEADERS = {
    "host", "accept", "accept-encoding", "authorization", "connection", "content-length", "content-type", "user-agent",
}  # fmt: skip
_READ_HEADERS = {"content-type", "location", "retry-after"}
T = TypeVar("T")
_keys: set[str] = set()
"""Keys that this process has read from the environment; they are removed from every message."""


class Transient(Exception):  # noqa: N818  (a state of the server)
    """A failure that may be temporary."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class NoAnswer(Exception):  # noqa: N818  (a result of a call)
    """The server refused this call, or sent no answer, such as an error message with status 200."""

    def __init__(self, status: Status, reason: str, message: str | None = None) -> None:
        """``reason`` in a few words, and the server's message."""
        super().__init__(reason)
        self.status = status
        self.reason = redacted(reason)
        self.message = None if message is None else redacted(message)


def key_from(variable: str | None, place: str) -> str | None:
    """The API key from the environment; None for an API without keys.

    Raises:
        ApiError: if the variable is not set, or has characters that a key cannot have: a client's error might print it.
    """
    if variable is None:
        return None
    if key := os.environ.get(variable, "").strip():
        if re.search(r"[^!-~]", key):
            found = "holds a space, a line break or a letter that no key has"
            raise ApiError(f"{place}: environment variable {variable} {found}. Copy the key again.")
        _keys.add(key)
        return key
    raise ApiError(f"{place}: environment variable {variable} is not set. Set it to the key.")


def redacted(text: str) -> str:
    """``text`` on one line, truncated, without markup, keys or look-alikes of keys: servers echo keys in errors."""
    line = " ".join(_TAG.sub(" ", _LOOKS_LIKE_A_KEY.sub("[key]", without_keys(text))).split())
    return line if len(line) <= _MAX_SHOWN else f"{line[:_MAX_SHOWN]}..."


def without_keys(text: str) -> str:
    """``text`` without the keys that this process knows; look-alikes may be words of an answer, and stay."""
    for key in _keys:
        for written in (key, quote(key, safe="")):
            text = text.replace(written, "[key]")
    return text


def raise_for_status(status: int, headers: Mapping[str, str], message: str, place: str) -> None:
    """Raise the error for an HTTP status of 300 or above.

    Args:
        status: HTTP status. A redirection ends the job: it might send the key, or the texts, to another server.
        headers: Headers of the response; Retry-After is respected.
        message: The server's message, redacted.
        place: Block of the configuration, for the error message.
    """
    if status < 300:
        return
    response = f"HTTP {status}{f' ({message})' if message else ''}"
    problem = f"{place}: {response}"
    if status < 400:
        to = redacted(headers.get("Location", ""))
        raise ApiError(
            f"{problem}: redirected to {to}, which is not followed. Write the address that answers."
        )
    if status in (404, 405, 410):
        raise ApiError(f"{problem}. Nothing is served there: correct address and model.")
    if status in (401, 403):
        raise ApiError(f"{problem}. The key is wrong or missing. Correct its environment variable.")
    if status == 402 or _QUOTA.search(message):
        raise ApiError(
            f"{problem}. The quota is used up; finished answers are kept. Top it up and run again."
        )
    if status in (408, 409, 429) or status >= 500:
        raise Transient(response, _retry_after(headers.get("Retry-After", "")))
    raise NoAnswer("refused", problem)


def _retry_after(header: str) -> float | None:
    """Seconds to wait; None if the header has no number."""
    with suppress(ValueError):
        return max(0.0, float(header))
    return None


def _may_pass(failure: BaseException) -> bool:
    """True if another attempt may have an answer."""
    return isinstance(failure, Transient) or (isinstance(failure, NoAnswer) and failure.status == "failed")


class Client(httpx2.Client):
    """HTTP client that calls a server as configured: waits its turn, retries, enforces limits of time and size.

    It follows no redirection. The SDK of a model adds headers from its own environment variables (OPENAI_ORG_ID,
    OPENAI_CUSTOM_HEADERS); only headers that an API needs are sent.
    """

    def __init__(self, calls: Calls, place: str, url: str, ledger: Ledger) -> None:
        """Prepare; several threads may call.

        Args:
            calls: Number of attempts and time limits.
            place: Block of the configuration, for error messages; all its jobs share its rate and daily budget.
            url: Address of the server, for error messages.
            ledger: Counts requests.
        """
        super().__init__(timeout=calls.timeout_seconds, limits=httpx2.Limits(max_connections=None))
        self.attempts = calls.attempts
        self._calls = calls
        self._place = place
        self._address = url
        self._ledger = ledger
        self._backoff = wait_random_exponential(calls.first_wait_seconds, calls.longest_wait_seconds)

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request with the headers that an API needs; returns its complete response.

        Raises:
            ApiError: if the response is too long, or does not end in time: a timeout ends only a silence, and a server
                that sends a byte now and then would be read for ever.
        """
        headers = {name: value for name, value in request.headers.items() if name in _SENT_HEADERS}
        sent = httpx2.Request(
            request.method,
            request.url,
            headers=headers,
            content=request.read(),
            extensions=request.extensions,
        )
        latest = time.monotonic() + self._calls.attempt_seconds
        try:
            with closing(super().send(sent, **options | {"stream": True})) as stream:
                body = b""
                for part in stream.iter_bytes():
                    body += part
                    if len(body) > LONGEST_ANSWER or time.monotonic() > latest:
                        limits = f"{self._calls.attempt_seconds:g} s and {LONGEST_ANSWER >> 20} MB"
                        raise self._failure(f"no complete answer within {limits}")
        except (httpx2.HTTPError, OSError) as error:  # its text may contain the URL
            raise Transient(type(error).__name__) from None
        headers = {name: value for name, value in stream.headers.items() if name in _READ_HEADERS}
        response = httpx2.Response(stream.status_code, headers=headers, content=body, request=request)
        message = "" if response.status_code < 400 else redacted(response.text)
        raise_for_status(response.status_code, response.headers, message, self._place)
        return response

    def call(self, ask: Callable[[], T]) -> T:
        """Call ``ask`` until it succeeds; returns its value.

        Raises:
            NoAnswer: if the server refuses the request, or the last attempt has no answer.
            ApiError: if it refuses every request, the last attempt fails, or an answer does not end in time.
        """
        attempts = Retrying(
            stop=stop_after_attempt(self.attempts),
            wait=self._wait,
            retry=retry_if_exception(_may_pass),
            before=self._take_turn,
            reraise=True,
        )
        try:
            answer: T = attempts(ask)
        except Transient as error:
            raise self._failure(f"{error}, {self.attempts} attempts in a row") from None
        return answer

    def _take_turn(self, _state: RetryCallState) -> None:
        time.sleep(self._ledger.turn(self._place, self._calls.per_second, self._calls.per_day))

    def _failure(self, problem: str) -> ApiError:
        advice = "Finished answers are kept; run again when the server is back."
        return ApiError(f"{self._place}: {self._address}: {problem}. {advice}")

    def _wait(self, state: RetryCallState) -> float:
        failure = state.outcome.exception() if state.outcome else None
        seconds = failure.retry_after if isinstance(failure, Transient) else None
        longest = self._calls.longest_wait_seconds
        if seconds is not None and seconds > longest:
            problem = f"the server asks to wait {seconds:.0f} s, longer than longest_wait_seconds {longest:g}"
            raise self._failure(problem) from None
        return self._backoff(state) if seconds is None else seconds
