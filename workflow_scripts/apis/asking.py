"""Requests to engines for the answers that the ledger lacks; only one process at a time queries a server.

An answer in the ledger survives any end of the process. A killed process loses the answers in flight, at most
``workers`` requests; the next process sends these again.

Stored answers are judged again with the current rules whenever they are read.

There are three kinds of failure. A ``Transient`` one (429, 5xx, resets, timeouts) is retried a limited number of times
and then ends the job. ``NoAnswer`` concerns a single request: the server refuses it, or sends no answer, which is
retried, too. An ``ApiError`` affects all further requests (a wrong key, an exhausted quota, a wrong address, a response
that never ends) and ends the job at once. Messages contain no keys.
"""

import json
import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, nullcontext
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import httpx2
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt
from tenacity.wait import wait_random_exponential

from workflow_scripts.apis.answer_checks import language_detector, text_fault
from workflow_scripts.apis.ledger import ApiRequest, Ledger, Row, Status
from workflow_scripts.errors import ApiError
from workflow_scripts.settings.apis import Calls

IN_A_ROW = 5
"""Consecutive requests without a usable answer after which the engine is considered broken."""
_SUSPICIOUS_ROW = 3  # consecutive unusable answers at the end of a job; the next job requests them again
REPEATED = "given to several different sentences"
_FINAL_REASONS = (REPEATED, "no completion", "broken characters")
"""Reasons that the stored answer is not enough to check again."""
_QUOTA = re.compile(
    r"insufficient[_ ]quota|quota (is |was )?(exceeded|exhausted)|exceeded your (current )?quota|insufficient balance",
    re.IGNORECASE,
)
_LIMIT = re.compile(r"too many|(rate|request)s?[-_ ]limit", re.IGNORECASE)
_LOOKS_LIKE_A_KEY = re.compile(r"\b(sk|key|Bearer)[-_ ][A-Za-z0-9_\-]{8,}")
_TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^<>]*>", re.IGNORECASE | re.DOTALL)
_MAX_SHOWN = 200  # characters of a server's message
LONGEST_ANSWER = 8 << 20  # bytes; the rest of an answer is not read
_SENT_HEADERS = {
    "host", "accept", "accept-encoding", "authorization", "connection", "content-length", "content-type", "user-agent",
}  # fmt: skip
_READ_HEADERS = {"content-type", "date", "location", "retry-after"}
T = TypeVar("T")
_keys: set[str] = set()
"""Keys that this process has read from the environment; they are removed from all messages."""


class Transient(Exception):  # noqa: N818  (a state of the server)
    """A failure that may be temporary."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class NoAnswer(Exception):  # noqa: N818  (a result of a call)
    """The server refused this call, or sent no answer, such as an error message with status 200."""

    def __init__(self, status: Status, reason: str, message: str | None = None) -> None:
        """Store the reason in a few words, and the server's message."""
        super().__init__(reason)
        self.status = status
        self.reason = redacted(reason)
        self.message = None if message is None else redacted(message)


def key_from(variable: str | None, path: str) -> str | None:
    """Return the API key from the environment; None for an API without keys.

    Raises:
        ApiError: if the variable is not set, or contains characters that keys cannot have: a client's error might print
            it.
    """
    if variable is None:
        return None
    if key := os.environ.get(variable, "").strip():
        if re.search(r"[^!-~]", key):
            problem = "contains a space, a line break or a letter that no key has"
            raise ApiError(f"{path}: environment variable {variable} {problem}. Copy the key again.")
        _keys.add(key)
        return key
    raise ApiError(f"{path}: environment variable {variable} is not set. Set it to the key.")


def redacted(text: str) -> str:
    """Return text on one line, truncated, without markup, keys or look-alikes of keys: servers echo keys in errors."""
    line = " ".join(_TAG.sub(" ", _LOOKS_LIKE_A_KEY.sub("[key]", without_keys(text))).split())
    return line if len(line) <= _MAX_SHOWN else f"{line[:_MAX_SHOWN]}..."


def without_keys(text: str) -> str:
    """Return text without this process's keys; look-alikes may be words of an answer, and stay."""
    for key in _keys:
        for written in (key, quote(key, safe="")):
            text = text.replace(written, "[key]")
    return text


class Server(NamedTuple):
    """The settings of a server, for messages."""

    path: str
    """Dotted path of the block of settings; all its jobs share its rate and daily budget."""
    url: str
    address_keys: tuple[str, ...] = ()
    """Keys of the block that decide the address; empty if none does."""
    key_variable: str | None = None
    """Environment variable with the API key; None if requests have none."""


def raise_for_status(status: int, headers: Mapping[str, str], message: str, server: Server) -> None:
    """Raise the error for an HTTP status of 300 or above.

    Args:
        status: HTTP status. A redirection ends the job: it might send the key, or the texts, to another server.
        headers: Headers of the response; Retry-After, in seconds or as a date, is respected.
        message: The server's message, redacted.
        server: The server.
    """
    if status < 300:
        return
    response = f"HTTP {status}{f' ({message})' if message else ''}"
    problem = f"{server.path}: {response}"
    if status < 400:
        to = redacted(headers.get("Location", ""))
        raise ApiError(
            f"{problem}: redirected to {to}, which is not followed. Set the address to the one that answers."
        )
    if status in (404, 405, 410):
        check = f"check {' and '.join(server.address_keys)}" if server.address_keys else "use another engine"
        missing = "address or model" if "model" in server.address_keys else "address"
        raise ApiError(f"{problem}. The server has no such {missing}: {check}.")
    if status in (401, 403):
        raise ApiError(f"{problem}. {_denied(message, server)}")
    if status == 402 or _QUOTA.search(message):
        raise ApiError(
            f"{problem}. The quota is exhausted. Increase it and run again; finished answers are stored."
        )
    if status in (408, 409, 429) or status >= 500:
        raise Transient(response, _retry_after(headers))
    raise NoAnswer("refused", problem)


def _denied(message: str, server: Server) -> str:
    """Return why a server denies access, with a remedy; LibreTranslate also refuses too many requests by 403."""
    if _LIMIT.search(message):
        return (
            "The server limits requests. Reduce per_second, and run again later; finished answers are stored."
        )
    if server.key_variable:
        return f"The key is wrong or missing. Correct its environment variable {server.key_variable}."
    if server.address_keys:
        return (
            "The server refuses requests without a key. Set key_variable to the environment variable with it."
        )
    return "The server refuses requests from this machine. Run again later, or use another engine."


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait by the header Retry-After, a number of seconds or a date; None without a usable one.

    A date is compared with the server's own clock, if its answer has one: this machine's may be wrong.
    """
    asked = headers.get("Retry-After", "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", asked):
        return float(asked)
    until, sent = _moment(asked), _moment(headers.get("Date", ""))
    return None if until is None else max(0.0, (until - (sent or datetime.now(UTC))).total_seconds())


def _moment(text: str) -> datetime | None:
    """Return the time of an HTTP date; None if the text is no date."""
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _may_pass(failure: BaseException) -> bool:
    """Return whether another attempt may succeed."""
    return isinstance(failure, Transient) or (isinstance(failure, NoAnswer) and failure.status == "failed")


class Client(httpx2.Client):
    """An HTTP client that respects a rate, retries, and enforces limits of time and size.

    The client follows no redirection. A model's SDK adds headers from its own environment variables (OPENAI_ORG_ID,
    OPENAI_CUSTOM_HEADERS); only headers that an API needs are sent.
    """

    def __init__(self, calls: Calls, server: Server, ledger: Ledger) -> None:
        """Prepare the client, which several threads may use.

        Args:
            calls: Number of attempts and time limits.
            server: The server.
            ledger: Ledger that counts requests.
        """
        super().__init__(timeout=calls.timeout_seconds, limits=httpx2.Limits(max_connections=None))
        self.attempts = calls.attempts
        self._calls = calls
        self._server = server
        self._ledger = ledger
        self._backoff = wait_random_exponential(calls.first_wait_seconds, calls.longest_wait_seconds)

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Return the complete response to a request, sent with the headers that an API needs.

        Raises:
            ApiError: if the response is too long or does not end in time. A read timeout is not enough: a server that
                sends a byte now and then would be read for ever.
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
        raise_for_status(response.status_code, response.headers, message, self._server)
        return response

    def call(self, ask: Callable[[], T]) -> T:
        """Return the value of ``ask``, which is called until it succeeds.

        Raises:
            NoAnswer: if the server refuses the request, or the last attempt has no answer.
            ApiError: if the server refuses every request, the last attempt fails, or an answer does not end in time.
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
        calls = self._calls
        time.sleep(self._ledger.rate_limit(self._server.path, calls.per_second, calls.per_day, calls.workers))

    def _failure(self, problem: str) -> ApiError:
        advice = "Run again when the server is back; finished answers are stored."
        return ApiError(f"{self._server.path}: {self._server.url}: {problem}. {advice}")

    def _wait(self, state: RetryCallState) -> float:
        """Return the seconds to wait: the backoff, or the server's own number if it is longer."""
        failure = state.outcome.exception() if state.outcome else None
        seconds = (failure.retry_after if isinstance(failure, Transient) else None) or 0
        longest = self._calls.longest_wait_seconds
        if seconds > longest:
            problem = (
                f"the server requests a wait of {seconds:.0f} s, longer than longest_wait_seconds {longest:g}"
            )
            raise self._failure(problem) from None
        return max(seconds, self._backoff(state))


class Engine:
    """A translator or language model, which makes requests, sends them, and judges answers.

    ``ask`` sends one request at a time by ``answer``; an engine that answers many at once overrides it.
    """

    path: str
    """Dotted path of the block of settings, for messages."""
    calls: Calls
    """Number of concurrent calls of ``ask``, each in its own thread, and time limits of a call."""
    at_once = 1
    """Number of requests per call."""
    client: Client | None = None
    """HTTP client; None for an engine on this machine."""

    def ask(self, requests: Sequence[ApiRequest]) -> list[Row]:
        """Send requests, and return a row for each, in order.

        Raises:
            ApiError: if the engine can no longer be used.
        """
        rows = []
        for request in requests:
            try:
                rows.append(self.answer(request))
            except NoAnswer as error:
                rows.append(Row(request, error.message, error.status, error.reason))
        return rows

    def answer(self, request: ApiRequest) -> Row:
        """Send a request, and return its row."""
        raise NotImplementedError

    def request(self, text: str) -> ApiRequest:
        """Return the request for a text."""
        raise NotImplementedError

    def fault(self, row: Row) -> str | None:
        """Return the fault of a row's answer by the current rules; None if it is usable."""
        raise NotImplementedError

    def row(
        self,
        request: ApiRequest,
        answer: str,
        metadata: Mapping[str, Any],
        cost_usd: float | None = None,
        fault: str | None = None,
    ) -> Row:
        """Return the judged row of an answer, without keys; rejected if a ``fault`` is given."""
        fault = fault or text_fault(answer, request.text)
        # Escapes lone surrogates, which UTF-8 cannot encode.
        text = without_keys(answer).encode("utf-8", "backslashreplace").decode()
        status: Status = "rejected" if fault else "usable"
        attributes = json.dumps(metadata, sort_keys=True)
        return self.judge(Row(request, text, status, fault or "", "", cost_usd, attributes))

    def judge(self, row: Row) -> Row:
        """Return a row with its status by the current rules and its answer unchanged."""
        if row.answer is None or row.status not in ("usable", "rejected") or row.reason in _FINAL_REASONS:
            return row
        fault = self.fault(row)
        return row._replace(status="rejected" if fault else "usable", reason=fault or "")


class CircuitBreaker:
    """A counter of unusable answers of a job, which stops the job if the engine is broken."""

    def __init__(self, path: str, max_unanswered: int) -> None:
        """Set the limit: more than ``max_unanswered`` requests without a usable answer, stored rows included."""
        self._path = path
        self._max_unanswered = max_unanswered
        self._unanswered = 0
        self.unusable: list[Row] = []
        """Rows since the last usable answer."""
        self.engine_works = False
        """Whether the last answer was usable; if not, only one call is sent at a time."""

    def count_stored(self, rows: Iterable[Row]) -> None:
        """Count rows from the ledger."""
        self._unanswered += sum(row.status != "usable" for row in rows)

    def count_new(self, rows: Sequence[Row]) -> None:
        """Count answers that have arrived, for this job or another."""
        self.count_stored(rows)
        for row in rows:
            self.engine_works = row.status == "usable"
            self.unusable = [] if self.engine_works else [*self.unusable, row]

    def check(self) -> None:
        """Raise an ApiError with the last answer if too many requests have no usable answer."""
        if len(self.unusable) < IN_A_ROW and self._unanswered <= self._max_unanswered:
            return
        problem = (
            f"{self._unanswered} requests without a usable answer, {len(self.unusable)} of them in a row"
        )
        for last in self.unusable[-1:]:
            answer = redacted(last.answer or "")
            problem += f"; the last was {last.status}, {last.reason}{f': {answer!r}' if answer else ''}"
        raise ApiError(
            f"{self._path}: {problem}. Usable answers are stored; docs/provenance.md explains how to "
            "list the others."
        )


def collect_answers(
    requests: Iterable[ApiRequest],
    ledger: Ledger,
    engine: Engine,
    watch: CircuitBreaker,
    on_progress: Callable[[int], None] = lambda count: None,
) -> dict[bytes, Row]:
    """Return a row for every request, by key; requests that are not in the ledger, or failed before, are sent.

    Args:
        requests: Requests; equal ones are sent once.
        ledger: Stored rows; if it is read-only, only these are used.
        engine: The engine to query.
        watch: Counter of unusable answers.
        on_progress: Function called with the number of answered requests.

    Raises:
        ApiError: if the engine is at fault, or the ledger is read-only and rows are missing.
    """
    wanted = {request.key: request for request in requests}
    stored = ledger.find([*wanted.values()])
    rows = {key: engine.judge(row) for key, row in stored.items() if ledger.read_only or row.is_final}
    missing = [request for key, request in wanted.items() if key not in rows]
    if missing and ledger.read_only:
        problem = f"{len(missing)} of {len(wanted)} answers are not in the ledger {ledger.path}"
        raise ApiError(f"{engine.path}: {problem}, and {ledger.why_read_only}")
    if not ledger.read_only:
        ledger.save(row for key, row in rows.items() if row != stored[key])
    watch.count_stored(rows.values())
    watch.check()
    on_progress(len(rows))
    if missing:
        language_detector()  # loading takes half a second, during which the first answer would not be saved
        # Many jobs may query a local engine at a time; duplicate requests cost nothing.
        turn = ledger.asking(missing[0].engine, engine.path) if engine.client else nullcontext()
        with turn:
            rows |= _ask_all(missing, ledger, engine, watch, on_progress)
    return rows


def _ask_all(
    requests: Sequence[ApiRequest],
    ledger: Ledger,
    engine: Engine,
    watch: CircuitBreaker,
    on_progress: Callable[[int], None],
) -> dict[bytes, Row]:
    """Return rows that are not in the ledger, by concurrent calls; no other process queries this engine."""
    answered: dict[bytes, Row] = {}
    in_flight: set[Future[list[Row]]] = set()

    def note(rows: Sequence[Row]) -> None:
        answered.update((row.request.key, row) for row in rows)
        watch.count_new(rows)
        on_progress(len(rows))

    # Another process may have answered while this one waited.
    note([row for row in ledger.find(requests).values() if row.is_final])
    waiting = deque(request for request in requests if request.key not in answered)
    try:
        # The end of the pool waits for answers in flight, which are paid.
        with ThreadPoolExecutor(engine.calls.workers) as pool:
            while waiting or in_flight:
                while waiting and len(in_flight) < (engine.calls.workers if watch.engine_works else 1):
                    part = [waiting.popleft() for _ in range(min(engine.at_once, len(waiting)))]
                    in_flight.add(pool.submit(lambda part: ledger.save(engine.ask(part)), part))
                done, in_flight = wait(in_flight, return_when=FIRST_COMPLETED)
                for future in done:
                    note(future.result())
                watch.check()
    except BaseException:
        suspicious = watch.unusable if len(watch.unusable) >= _SUSPICIOUS_ROW else []
        ledger.save(row._replace(status="failed") for row in suspicious)
        raise
    return answered
