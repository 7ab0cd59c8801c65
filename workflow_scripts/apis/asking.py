"""Asking an engine for what the ledger lacks: claims, several requests at once, an end where the engine is at fault.

When an answer is in the ledger, it survives whatever happens to the process. A process that is killed loses the answers
that are under way, at most ``workers`` requests, and nothing else; who goes on takes over its claims.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Protocol

from workflow_scripts.apis.ledger import Ledger, Request, Row
from workflow_scripts.errors import ApiError

IN_A_ROW = 5
"""After so many requests in a row without a usable answer, the engine is at fault, not the requests."""
_MORE_THAN_CHANCE = 3  # in a row at the end of a job, which are asked again by the next one
_LOOK_AGAIN_SECONDS = 0.2  # at requests that another process has claimed
_SHOWN = 120  # characters of an answer


class Engine(Protocol):
    """What can be asked."""

    place: str
    """Block of the configuration, for messages."""
    workers: int
    """Calls of ``ask`` at the same time, each in a thread of its own."""
    at_once: int
    """Requests of one call."""
    longest_seconds: float
    """No call takes longer."""

    def ask(self, requests: Sequence[Request]) -> list[Row]:
        """What came of each request, in order.

        Raises:
            ApiError: if the engine cannot be used any more.
        """


class Watch:
    """Notices an engine that gives no usable answers, over all that a job asks."""

    def __init__(self, place: str, most_without: int) -> None:
        """Stop when more requests than ``most_without`` have no usable answer, kept rows included."""
        self._place = place
        self._most = most_without
        self._without = 0
        self.in_a_row: list[Row] = []
        self.trusts = False
        """Whether the last answer was usable: until then, one call is sent at a time."""

    def keep(self, rows: Iterable[Row]) -> None:
        """Count what is known already."""
        self._without += sum(row.status != "usable" for row in rows)

    def see(self, row: Row) -> None:
        """Count an answer that has come."""
        self.trusts = row.status == "usable"
        if self.trusts:
            self.in_a_row = []
        else:
            self._without += 1
            self.in_a_row.append(row)

    def check(self) -> None:
        """Raise an ApiError with the last answer if there were too many without one."""
        if len(self.in_a_row) < IN_A_ROW and self._without <= self._most:
            return
        found = f"{self._without} requests without a usable answer, {len(self.in_a_row)} of them in a row"
        if self.in_a_row:
            last = self.in_a_row[-1]
            answer = " ".join((last.answer or "").split())
            found += f"; the last was {last.status}, {last.reason}" + (
                f": {answer[:_SHOWN]!r}" if answer else ""
            )
        raise ApiError(
            f"{self._place}: {found}. Usable answers are kept; python -m workflow_scripts.tools.answers shows the "
            "others, and has them asked again (forget)."
        )


def settled(
    requests: Iterable[Request],
    ledger: Ledger,
    engine: Engine,
    watch: Watch,
    *,
    offline: bool,
    tell: Callable[[int], None] = lambda count: None,
) -> dict[bytes, Row]:
    """A row for every request, by key, asking for those that are not in the ledger or failed before.

    Args:
        requests: Equal ones are asked once.
        ledger: Rows so far.
        engine: Who is asked.
        watch: Counts what is not usable.
        offline: Use what is in the ledger alone.
        tell: Called with the number of requests that have become settled.

    Raises:
        ApiError: if the engine is at fault, or the study is offline and rows are missing.
    """
    wanted = {request.key: request for request in requests}
    rows = {key: row for key, row in ledger.find(list(wanted.values())).items() if offline or row.is_final}
    missing = [request for key, request in wanted.items() if key not in rows]
    if missing and offline:
        found = f"{len(missing)} of {len(wanted)} answers are not in the ledger"
        raise ApiError(f"{engine.place}: {found}, and the study is offline. Run it once with offline: false.")
    watch.keep(rows.values())
    watch.check()
    tell(len(rows))
    return rows | _Asked(ledger, engine, watch, tell).all(missing)


class _Asked:
    """The requests of one job that are under way."""

    def __init__(self, ledger: Ledger, engine: Engine, watch: Watch, tell: Callable[[int], None]) -> None:
        self._ledger = ledger
        self._engine = engine
        self._watch = watch
        self._tell = tell
        self._flying: set[Future[list[Row]]] = set()
        self._rows: dict[bytes, Row] = {}

    def all(self, requests: Sequence[Request]) -> dict[bytes, Row]:
        waiting = deque(requests)
        if not waiting:
            return {}
        with ThreadPoolExecutor(self._engine.workers) as pool:
            try:
                while waiting or self._flying:
                    busy = self._send(waiting, pool)
                    self._land(_LOOK_AGAIN_SECONDS if busy else None)
                    self._watch.check()
            except BaseException:
                self._give_up()
                raise
        return self._rows

    def _send(self, waiting: deque[Request], pool: ThreadPoolExecutor) -> bool:
        """Claim and send as much as there is room for; returns whether others hold what is left."""
        calls = self._engine.workers if self._watch.trusts else 1
        room = max(0, calls - len(self._flying)) * self._engine.at_once
        part = [waiting.popleft() for _ in range(min(room, len(waiting)))]
        if not part:
            return False
        granted = self._ledger.claim(part, self._engine.longest_seconds)
        waiting.extend(granted.busy)
        self._note(granted.known.values())
        for start in range(0, len(granted.mine), self._engine.at_once):
            batch = granted.mine[start : start + self._engine.at_once]
            self._flying.add(pool.submit(self._engine.ask, batch))
        return bool(granted.busy)

    def _land(self, seconds: float | None) -> None:
        """Settle what has come in, after the first answer or ``seconds``."""
        if not self._flying:
            time.sleep(seconds or 0)
            return
        done, self._flying = wait(self._flying, seconds, FIRST_COMPLETED)
        self._settle(done)

    def _settle(self, done: Iterable[Future[list[Row]]]) -> None:
        """Write all answers that came, before an error of any of them is raised."""
        failures = [failure for future in done if (failure := future.exception())]
        rows = [row for future in done if not future.exception() for row in future.result()]
        if rows:
            self._note(self._ledger.settle(rows))
        for failure in failures:
            raise failure

    def _note(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._rows[row.request.key] = row
            self._watch.see(row)
            self._tell(1)

    def _give_up(self) -> None:
        """Wait for what is under way, which is paid; have asked again what was in a row without an answer."""
        flying = {future for future in self._flying if not future.cancel()}
        wait(flying)
        rows = [row for future in flying if not future.exception() for row in future.result()]
        in_a_row = self._watch.in_a_row
        at_fault = in_a_row if len(in_a_row) >= _MORE_THAN_CHANCE else []
        self._ledger.settle([*rows, *(row._replace(status="failed") for row in at_fault)])
        self._ledger.release()


def adopt(
    requests: Iterable[Request],
    key_of: Callable[[Request], bytes | None],
    row_of: Callable[[Request, str], Row],
    ledger: Ledger,
) -> None:
    """Take over what an earlier version kept for ``requests``, where it passes the door or not.

    Args:
        requests: Distinct requests.
        key_of: The key of a request then.
        row_of: The row of a request with its answer then.
        ledger: Rows so far.
    """
    if ledger.read_only or not ledger.earlier_answers():
        return
    listed = list(requests)
    known = ledger.find(listed)
    found = []
    for request in (request for request in listed if request.key not in known):
        key = key_of(request)
        if key is not None and (answer := ledger.earlier(key)) is not None:
            found.append((row_of(request, answer)._replace(asked_at="before"), key))
    if found:
        ledger.adopt(found)
