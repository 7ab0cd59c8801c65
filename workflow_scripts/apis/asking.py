"""Ask an engine for the answers that the ledger lacks: one process at a time, and a stop if the engine fails.

An answer in the ledger survives any end of the process. A process that is killed loses the answers in flight, at most
``workers`` requests; the next process sends them again.

Stored answers are judged again with the current rules whenever they are read.
"""

import json
import shlex
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from workflow_scripts.apis.answer_checks import language_detector, text_fault
from workflow_scripts.apis.calls import Client, NoAnswer, without_keys
from workflow_scripts.apis.ledger import Ledger, Request, Row, Status, ledger_path
from workflow_scripts.errors import ApiError
from workflow_scripts.settings.apis import Calls

IN_A_ROW = 5
"""Requests in a row without a usable answer after which the engine, not the requests, is considered broken."""
_SUSPICIOUS_ROW = 3  # unusable answers in a row at the end of a job; the next job asks for them again
_MAX_SHOWN = 120  # characters of an answer
_LIST_OTHERS = "SELECT text, status, reason, answer FROM requests WHERE status <> 'usable'"
REPEATED = "given to several different sentences"
_FINAL_REASONS = (REPEATED, "garbled", "no completion", "broken characters")
"""Reasons that cannot be checked again from the stored answer alone."""


class Engine:
    """A translator or language model: makes requests, sends them, and judges answers.

    ``ask`` sends one request at a time by ``answer``; an engine that answers many at once overrides it.
    """

    place: str
    """Block of the configuration, for messages."""
    calls: Calls
    """Number of concurrent calls of ``ask``, each in its own thread, and time limits of a call."""
    at_once = 1
    """Requests of one call."""
    client: Client
    """HTTP client; only engines on a server have one."""

    def ask(self, requests: Sequence[Request]) -> list[Row]:
        """Send requests; returns a row for each, in order.

        Raises:
            ApiError: if the engine cannot be used any more.
        """
        rows = []
        for request in requests:
            try:
                rows.append(self.answer(request))
            except NoAnswer as error:
                rows.append(Row(request, error.message, error.status, error.reason))
        return rows

    def answer(self, request: Request) -> Row:
        """Send a request; returns its row."""
        raise NotImplementedError

    def request(self, text: str) -> Request:
        """Make the request for ``text``."""
        raise NotImplementedError

    def fault(self, row: Row) -> str | None:
        """The fault of a row's answer by the current rules; None if it is usable."""
        raise NotImplementedError

    def row(
        self,
        request: Request,
        answer: str,
        noted: Mapping[str, Any],
        cost_usd: float | None = None,
        fault: str | None = None,
    ) -> Row:
        """The row of an answer without keys, judged; rejected if there is a ``fault`` already."""
        fault = fault or text_fault(answer, request.text)
        # Escapes lone surrogates, which UTF-8 cannot hold.
        text = without_keys(answer).encode("utf-8", "backslashreplace").decode()
        status: Status = "rejected" if fault else "usable"
        attributes = json.dumps(noted, sort_keys=True)
        return self.judge(Row(request, text, status, fault or "", "", cost_usd, attributes))

    def judge(self, row: Row) -> Row:
        """A row with its status by the current rules and its answer unchanged."""
        if row.answer is None or row.status not in ("usable", "rejected") or row.reason in _FINAL_REASONS:
            return row
        fault = self.fault(row)
        return row._replace(status="rejected" if fault else "usable", reason=fault or "")


class Watch:
    """Counts unusable answers of all requests of a job, to stop if the engine is broken."""

    def __init__(self, place: str, max_unanswered: int) -> None:
        """Stop when more requests than ``max_unanswered`` have no usable answer, stored rows included."""
        self._place = place
        self._max_unanswered = max_unanswered
        self._unanswered = 0
        self.unusable: list[Row] = []
        """Rows since the last usable answer."""
        self.engine_works = False
        """True if the last answer was usable; until then, one call is sent at a time."""

    def count_stored(self, rows: Iterable[Row]) -> None:
        """Count rows that were in the ledger."""
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
            answer = " ".join((last.answer or "").split())[:_MAX_SHOWN]
            problem += f"; the last was {last.status}, {last.reason}{f': {answer!r}' if answer else ''}"
        others = shlex.join(["sqlite3", "-line", str(ledger_path()), _LIST_OTHERS])
        raise ApiError(f"{self._place}: {problem}. Usable answers are kept; list the others: {others}")


def collect_answers(
    requests: Iterable[Request],
    ledger: Ledger,
    engine: Engine,
    watch: Watch,
    tell: Callable[[int], None] = lambda count: None,
) -> dict[bytes, Row]:
    """A row for every request, by key; requests that are not in the ledger, or failed before, are sent.

    Args:
        requests: Equal ones are sent once.
        ledger: Stored rows; if it is read-only, only these are used.
        engine: The engine to ask.
        watch: Counts unusable answers.
        tell: Called with the number of requests that have been answered.

    Raises:
        ApiError: if the engine is at fault, or the ledger is read-only and rows are missing.
    """
    wanted = {request.key: request for request in requests}
    stored = ledger.find([*wanted.values()])
    rows = {key: engine.judge(row) for key, row in stored.items() if ledger.read_only or row.is_final}
    missing = [request for key, request in wanted.items() if key not in rows]
    if missing and ledger.read_only:
        problem = f"{len(missing)} of {len(wanted)} answers are not in the ledger"
        raise ApiError(
            f"{engine.place}: {problem}, and the study is offline, or may not write there. "
            "Run it once with offline: false."
        )
    if not ledger.read_only:
        ledger.save(row for key, row in rows.items() if row != stored[key])
    watch.count_stored(rows.values())
    watch.check()
    tell(len(rows))
    if missing:
        language_detector()  # loading takes half a second, in which the first answer would not be saved
        with ledger.asking(missing[0].engine, engine.place):
            rows |= _ask_all(missing, ledger, engine, watch, tell)
    return rows


def _ask_all(
    requests: Sequence[Request], ledger: Ledger, engine: Engine, watch: Watch, tell: Callable[[int], None]
) -> dict[bytes, Row]:
    """Ask for rows that are not in the ledger, with concurrent calls; no other process asks this engine."""
    answered: dict[bytes, Row] = {}
    in_flight: set[Future[list[Row]]] = set()

    def note(rows: Sequence[Row]) -> None:
        answered.update((row.request.key, row) for row in rows)
        watch.count_new(rows)
        tell(len(rows))

    # Another process may have answered while this one waited.
    note([row for row in ledger.find(requests).values() if row.is_final])
    waiting = deque(request for request in requests if request.key not in answered)
    try:
        with ThreadPoolExecutor(
            engine.calls.workers
        ) as pool:  # its end waits for answers in flight, which are paid
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
