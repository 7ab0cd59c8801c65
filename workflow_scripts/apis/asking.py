"""Asking an engine for what the ledger lacks: claims, several requests at once, an end where the engine is at fault.

When an answer is in the ledger, it survives whatever happens to the process. A process that is killed loses the answers
that are under way, at most ``workers`` requests, and nothing else; who goes on takes over its claims.

Of a call for several requests, each answer counts for itself: good ones are kept, and what got none is asked once more.
Where a whole call came to nothing, its requests are asked again one by one, since one of them may be why.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Protocol, Self

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
    tries: int
    """How often a job asks for what gets no answer (status ``failed``)."""
    pause_seconds: float
    """Before such a request is asked again."""

    def ask(self, requests: Sequence[Request]) -> list[Row]:
        """What came of each request, in order.

        Raises:
            ApiError: if the engine cannot be used any more.
        """


class Watch:
    """Notices an engine that gives no usable answers, over all that a job asks; at its end says what was not used."""

    def __init__(self, place: str, most_without: int) -> None:
        """Stop when more requests than ``most_without`` have no usable answer, kept rows included."""
        self._place = place
        self._most = most_without
        self._without = 0
        self.in_a_row: list[Row] = []
        self.trusts = False
        """Whether the last answer was usable: until then, one call is sent at a time."""
        self.sent = 0
        """Requests that this job sent; those sent again count again."""
        self._unused: Counter[str] = Counter()

    def __enter__(self) -> Self:
        """Nothing more than the object itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave a line in the log of what was sent, and of what may be paid and was not used."""
        if self.sent:
            reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(self._unused.items()))
            unused = f"; {self._unused.total():,} answers, perhaps paid, are not used ({reasons})"
            print(f"{self._place}: {self.sent:,} requests sent{unused if reasons else ''}", flush=True)  # noqa: T201

    def waste(self, rows: Iterable[Row]) -> None:
        """Count answers that are not used."""
        self._unused.update(
            f"{row.status}, {row.reason}" for row in rows if row.status in ("failed", "rejected")
        )

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
            self.waste([row])

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
            f"{self._place}: {found}. Usable answers are kept; python -m workflow_scripts answers shows the "
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
        self._waiting: deque[Request] = deque()
        self._failed: Counter[bytes] = Counter()
        self._alone: set[bytes] = set()

    def all(self, requests: Sequence[Request]) -> dict[bytes, Row]:
        self._waiting.extend(requests)
        if not self._waiting:
            return {}
        with ThreadPoolExecutor(self._engine.workers) as pool:
            try:
                while self._waiting or self._flying:
                    busy = self._send(pool)
                    self._land(_LOOK_AGAIN_SECONDS if busy else None)
                    self._watch.check()
            except BaseException:
                self._give_up()
                raise
        return self._rows

    def _send(self, pool: ThreadPoolExecutor) -> bool:
        """Claim and send as much as there is room for; returns whether others hold what is left."""
        calls = self._engine.workers if self._watch.trusts else 1
        part, size = self._next(calls - len(self._flying))
        if not part:
            return False
        granted = self._ledger.claim(part, self._engine.longest_seconds)
        self._waiting.extend(granted.busy)
        self._note(granted.known.values())
        for start in range(0, len(granted.mine), size):
            batch = granted.mine[start : start + size]
            self._watch.sent += len(batch)
            self._flying.add(pool.submit(self._ask, batch))
        return bool(granted.busy)

    def _next(self, calls: int) -> tuple[list[Request], int]:
        """Requests for so many calls, and how many go into each."""
        alone = bool(self._waiting) and self._waiting[0].key in self._alone
        size = 1 if alone else self._engine.at_once
        part: list[Request] = []
        while self._waiting and len(part) < calls * size:
            if (self._waiting[0].key in self._alone) != alone:
                break
            part.append(self._waiting.popleft())
        return part, size

    def _ask(self, batch: list[Request]) -> list[Row]:
        if any(request.key in self._failed for request in batch):
            time.sleep(self._engine.pause_seconds)
        return self._engine.ask(batch)

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
        answered = [future.result() for future in done if not future.exception()]
        if answered:
            rows = self._ledger.settle(row for rows in answered for row in rows)
            self._note(row for row in rows if not self._has_another_try(row))
        for rows in answered:
            self._put_back([row for row in rows if self._has_another_try(row)], whole=len(rows))
        for failure in failures:
            raise failure

    def _has_another_try(self, row: Row) -> bool:
        return row.status == "failed" and self._failed[row.request.key] + 1 < self._engine.tries

    def _put_back(self, rows: list[Row], whole: int) -> None:
        """Have requests without an answer asked again, before all others; ``whole`` is the size of their call."""
        keys = [row.request.key for row in rows]
        if len(rows) == whole > 1:
            self._alone.update(keys)
        self._failed.update(keys)
        self._watch.waste(rows)
        self._waiting.extendleft(row.request for row in reversed(rows))

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
        self._watch.waste(rows)
        in_a_row = self._watch.in_a_row
        at_fault = in_a_row if len(in_a_row) >= _MORE_THAN_CHANCE else []
        self._ledger.settle([*rows, *(row._replace(status="failed") for row in at_fault)])
        self._ledger.release()
