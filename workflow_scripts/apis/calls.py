"""Calls over the network: which failures are temporary, when to retry, and how to keep keys out of messages.

There are three kinds of failure. After a ``Transient`` one (429, 5xx, resets, timeouts), the call is retried a limited
number of times. ``NoAnswer`` concerns a single call: the server will not answer it, or what it sent holds no answer and
may be paid all the same. An ``ApiError`` affects all further requests (a wrong key, an exhausted quota, an address that
is none, an answer without an end) and ends the job at once.
"""

import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import closing, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import httpx2
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_random_exponential

from workflow_scripts.apis.ledger import Ledger, Request, Row, Status
from workflow_scripts.errors import ApiError
from workflow_scripts.settings.apis import Calls

_QUOTA = re.compile(
    r"insufficient[_ ]quota|quota (is |was )?(exceeded|exhausted)|exceeded your (current )?quota|insufficient balance",
    re.IGNORECASE,
)
_LOOKS_LIKE_A_KEY = re.compile(r"\b(sk|key|Bearer)[-_ ][A-Za-z0-9_\-]{8,}")
_TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^<>]*>", re.IGNORECASE | re.DOTALL)
_SHOWN = 200  # characters of a server's message
LONGEST_ANSWER = 8 << 20  # bytes; no more of an answer is read
_SENT = {
    "host",
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "user-agent",
}
_READ = {"content-type", "location", "retry-after"}
T = TypeVar("T")
_keys: set[str] = set()
"""Keys that this process has read from the environment, whatever their variables are called: none is ever shown."""


class Transient(Exception):  # noqa: N818  (a state of the server)
    """A failure that may be temporary."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class NoAnswer(Exception):  # noqa: N818  (an answer, if an unwelcome one)
    """No answer came: the server refuses this one call, or failed, as with an error message and status 200."""

    def __init__(self, status: Status, reason: str, said: str | None = None) -> None:
        """``reason`` in a few words, and what the server said."""
        super().__init__(reason)
        self.status = status
        self.reason = redacted(reason)
        self.said = None if said is None else redacted(said)

    def row(self, request: Request) -> Row:
        """What came of a request."""
        return Row(request, self.said, self.status, self.reason)


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
        _keys.add(key)
        return key
    raise ApiError(f"{place}: environment variable {variable} is not set. Set it to the key.")


def redacted(text: str) -> str:
    """``text`` on one line, truncated, without markup, keys or anything like one: servers echo keys in errors."""
    line = " ".join(_TAG.sub(" ", _LOOKS_LIKE_A_KEY.sub("[key]", without_keys(text))).split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."


def without_keys(text: str) -> str:
    """``text`` without the keys that this process knows; what only looks like one may be words of an answer."""
    for key in _keys:
        for written in (key, quote(key, safe="")):
            text = text.replace(written, "[key]")
    return text


def raise_for_status(status: int, headers: Mapping[str, str], message: str, place: str) -> None:
    """Raise the kind of failure that an HTTP status means; a status below 300 is no failure.

    Args:
        status: HTTP status. A redirection ends the job: it might carry the key, or the texts, to another server.
        headers: Headers of the answer; Retry-After is respected.
        message: The server's message, redacted.
        place: Block of the configuration, for the error message.
    """
    if status < 300:
        return
    answered = f"HTTP {status}{f' ({message})' if message else ''}"
    said = f"{place}: {answered}"
    if status < 400:
        to = _server_of(headers.get("Location", ""))
        raise ApiError(f"{said}: sent on to {to}, where nothing is sent. Write the address that answers.")
    if status in (404, 405, 410):
        raise ApiError(f"{said}. There is nothing to ask: correct address and model.")
    if status in (401, 403):
        raise ApiError(f"{said}. The key is wrong or missing. Correct its environment variable.")
    if status == 402 or _QUOTA.search(message):
        raise ApiError(f"{said}. The quota is used up; finished answers are kept. Top it up and run again.")
    if status in (408, 409, 429) or status >= 500:
        raise Transient(answered, _retry_after(headers.get("Retry-After", "")))
    raise NoAnswer("refused", said)


def _server_of(url: str) -> str:
    """Scheme, host and port of an address, of which the rest may hold the key."""
    with suppress(ValueError):
        parts = urlsplit(url)
        if parts.scheme and parts.netloc:
            return redacted(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}")
    return "another path"


def _retry_after(header: str) -> float | None:
    """Seconds that a server asks to wait, from a header with a number of seconds or a date."""
    with suppress(ValueError):
        return max(0.0, float(header))
    with suppress(ValueError, TypeError):  # of a date without a time zone
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    return None


class _Http(httpx2.Client):
    """An HTTP client that follows no redirection, reads no endless answer, and raises the failures above.

    A model's SDK adds headers from its own environment variables (OPENAI_ORG_ID, OPENAI_CUSTOM_HEADERS); only those
    that an API needs are sent.
    """

    def __init__(self, place: str, calls: Calls) -> None:
        """Prepare; ``place`` is the block of the configuration, for messages."""
        super().__init__(timeout=calls.timeout_seconds, limits=httpx2.Limits(max_connections=None))
        self._place = place

    def send(self, request: httpx2.Request, **given: Any) -> httpx2.Response:
        """The whole answer to a request."""
        sent = httpx2.Request(
            request.method,
            request.url,
            headers={name: value for name, value in request.headers.items() if name in _SENT},
            content=request.read(),
            extensions=request.extensions,
        )
        try:
            with closing(super().send(sent, **given | {"stream": True})) as response:
                body = b""
                for part in response.iter_bytes():
                    body += part
                    if len(body) > LONGEST_ANSWER:
                        raise NoAnswer(
                            "failed", f"answer over {LONGEST_ANSWER >> 20} MB", body[:_SHOWN].decode("latin1")
                        )
        except (httpx2.HTTPError, OSError) as error:  # its text may contain the URL
            raise Transient(type(error).__name__) from None
        headers = {name: value for name, value in response.headers.items() if name in _READ}
        whole = httpx2.Response(response.status_code, headers=headers, content=body, request=request)
        raise_for_status(
            whole.status_code,
            whole.headers,
            "" if whole.status_code < 400 else redacted(whole.text),
            self._place,
        )
        return whole


class Client:
    """Asks a server as configured: waits for its turn, retries after transient failures, ends what has no end."""

    def __init__(self, calls: Calls, place: str, url: str, ledger: Ledger) -> None:
        """Prepare; several threads may call.

        Args:
            calls: How often and how long to try.
            place: Block of the configuration, for error messages; all its jobs share its rate and daily budget.
            url: Address of the server, whose scheme, host and port messages show.
            ledger: It counts requests.
        """
        self.attempts = calls.attempts
        self.http = _Http(place, calls)
        self._calls = calls
        self._place = place
        self._address = _server_of(url)
        self._ledger = ledger
        self._backoff = wait_random_exponential(calls.first_wait_seconds, calls.longest_wait_seconds)

    def call(self, ask: Callable[[], T]) -> T:
        """What ``ask`` returns at the first attempt that succeeds.

        Raises:
            NoAnswer: if the server refuses the request.
            ApiError: if it refuses every request, the last attempt fails, or an answer has no end.
        """
        attempts = Retrying(
            stop=stop_after_attempt(self.attempts),
            wait=self._wait,
            retry=retry_if_exception_type(Transient),
            reraise=True,
        )
        try:
            answer: T = attempts(self._attempt, ask)
        except Transient as error:
            found = f"{self._address}: {error}, {self.attempts} attempts in a row"
            advice = "Finished answers are kept; run again when the server is back."
            raise ApiError(f"{self._place}: {found}. {advice}") from None
        return answer

    def _attempt(self, ask: Callable[[], T]) -> T:
        """One answer, when it is this call's turn, read by a thread that is abandoned if the answer has no end.

        A timeout ends only a silence: a server that sends a byte now and then would be read for ever.
        """
        time.sleep(self._ledger.turn(self._place, self._calls.per_second, self._calls.per_day))
        answer: Future[T] = Future()

        def run() -> None:
            try:
                answer.set_result(ask())
            except BaseException as error:  # it is raised where the result is waited for
                answer.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        try:
            return answer.result(self._calls.attempt_seconds)
        except TimeoutError:
            found = f"{self._address}: no whole answer within {self._calls.attempt_seconds:g} s"
            advice = "Finished answers are kept; run again when the server is well."
            raise ApiError(f"{self._place}: {found}. {advice}") from None

    def _wait(self, state: RetryCallState) -> float:
        failure = state.outcome.exception() if state.outcome else None
        asked = failure.retry_after if isinstance(failure, Transient) else None
        longest = self._calls.longest_wait_seconds
        if asked is not None and asked > longest:
            found = f"the server asks to wait {asked:.0f} s, longer than longest_wait_seconds {longest:g}"
            raise ApiError(f"{self._place}: {found}. Finished answers are kept; run again later.") from None
        return self._backoff(state) if asked is None else asked
