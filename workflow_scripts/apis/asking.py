"""Asking an engine for what the ledger lacks: claims, several requests at once, an end where the engine is at fault.

An answer that is in the ledger survives whatever happens to the process. A process that is killed loses the answers
that are under way, at most ``workers`` requests, and nothing else; whoever goes on takes over its claims.

Kept answers are judged again when they are read, by the rules of today. An engine that has failed a job is not asked by
other jobs of the same run of Snakemake.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from workflow_scripts.apis.calls import Client
from workflow_scripts.apis.door import load_detector
from workflow_scripts.apis.ledger import Ledger, Request, Row
from workflow_scripts.errors import ApiError
from workflow_scripts.settings.apis import Calls

IN_A_ROW = 5
"""After so many requests in a row without a usable answer, the engine is at fault, not the requests."""
_MORE_THAN_CHANCE = 3  # in a row at the end of a job, which are asked again by the next one
_LOOK_AGAIN_SECONDS = 0.2  # at requests that another process has claimed
_SHOWN = 120  # characters of an answer
OF_ANOTHER, OF_SEVERAL = "of another sentence", "given to several different sentences"
_FOR_GOOD = (OF_ANOTHER, OF_SEVERAL, "garbled", "no completion", "broken characters")
"""Reasons that the kept answer does not show."""


class Engine:
    """What can be asked."""

    place: str
    """Block of the configuration, for messages."""
    calls: Calls
    """How many calls of ``ask`` at the same time, each in a thread of its own, and how long one may take."""
    at_once = 1
    """Requests of one call."""
    tries = 1
    """How often a request is sent that gets no answer (status ``failed``)."""
    client: Client
    """How it is called; only an engine on a server has one."""

    def ask(self, requests: Sequence[Request]) -> list[Row]:
        """What came of each request, in order.

        Raises:
            ApiError: if the engine cannot be used any more.
        """
        raise NotImplementedError

    def request(self, text: str) -> Request:
        """The request that ``text`` makes."""
        raise NotImplementedError

    def fault(self, row: Row) -> str | None:
        """What is wrong with the answer of a row, by the rules of today; None if nothing is."""
        raise NotImplementedError

    def judged(self, row: Row) -> Row:
        """A row with its status by the rules of today; its answer stays as it came."""
        if row.answer is None or row.status not in ("usable", "rejected") or row.reason in _FOR_GOOD:
            return row
        fault = self.fault(row)
        return row._replace(status="rejected" if fault else "usable", reason=fault or "")

    def used(self, row: Row) -> Row:
        """A row with its answer as it is used: without what it came wrapped in."""
        return row


def probe(engine: Engine, question: str = "The old town is on the river.") -> Row:
    """Ask an engine one question, once, and keep nothing: whether it answers, and what.

    A probe costs a request of the daily budget and a few tokens. The row's status says how the answer was judged.

    Raises:
        ApiError: if the engine cannot be used: one line with its place, its address and the reason.
    """
    if hasattr(engine, "client"):
        engine.client.attempts = 1
    return engine.used(engine.ask([engine.request(question)])[0])


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

    def see(self, rows: Sequence[Row]) -> None:
        """Count answers that have come, this job's or another's."""
        self.keep(rows)
        for row in rows:
            self.trusts = row.status == "usable"
            self.in_a_row = [] if self.trusts else [*self.in_a_row, row]

    def check(self) -> None:
        """Raise an ApiError with the last answer if there were too many without one."""
        if len(self.in_a_row) < IN_A_ROW and self._without <= self._most:
            return
        found = f"{self._without} requests without a usable answer, {len(self.in_a_row)} of them in a row"
        for last in self.in_a_row[-1:]:
            said = " ".join((last.answer or "").split())[:_SHOWN]
            found += f"; the last was {last.status}, {last.reason}{f': {said!r}' if said else ''}"
        advice = "list the others with python -m workflow_scripts answers show."
        raise ApiError(f"{self._place}: {found}. Usable answers are kept; {advice}")


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
    kept = ledger.find(list(wanted.values()))
    rows = {key: engine.judged(row) for key, row in kept.items() if offline or row.is_final}
    if not ledger.read_only:
        ledger.settle((row for key, row in rows.items() if row != kept[key]), even_usable=True)
    missing = [request for key, request in wanted.items() if key not in rows]
    if missing and offline:
        found = f"{len(missing)} of {len(wanted)} answers are not in the ledger"
        raise ApiError(f"{engine.place}: {found}, and the study is offline. Run it once with offline: false.")
    watch.keep(rows.values())
    watch.check()
    tell(len(rows))
    if missing:
        ledger.check_given_up(engine.place)
        load_detector()  # before the first answer, which would lie unsaved for as long
        try:
            rows |= _ask_all(missing, ledger, engine, watch, tell)
        except ApiError as error:
            ledger.give_up(engine.place, str(error))
            raise
    return {key: engine.used(row) for key, row in rows.items()}


def _ask(batch: list[Request], ledger: Ledger, engine: Engine) -> list[Row]:
    """Ask for a batch, and again for what got no answer; good answers are settled before."""
    rows = engine.ask(batch)
    kept: list[Row] = []
    for _again in range(engine.tries - 1):
        failed = [row.request for row in rows if not row.is_final]
        if not failed:
            break
        kept += ledger.settle(row for row in rows if row.is_final)
        time.sleep(engine.calls.first_wait_seconds)
        rows = engine.ask(failed)
    return kept + rows


def _ask_all(
    requests: Iterable[Request], ledger: Ledger, engine: Engine, watch: Watch, tell: Callable[[int], None]
) -> dict[bytes, Row]:
    """Rows of requests that are not in the ledger, several calls at once."""
    found: dict[bytes, Row] = {}
    longest = engine.calls.longest_seconds * engine.tries
    waiting = deque(requests)
    flying: set[Future[list[Row]]] = set()

    def note(rows: Sequence[Row]) -> None:
        found.update((row.request.key, row) for row in rows)
        watch.see(rows)
        tell(len(rows))

    with ThreadPoolExecutor(engine.calls.workers) as pool:
        try:
            while waiting or flying:
                calls, size = engine.calls.workers if watch.trusts else 1, engine.at_once
                room = (calls - len(flying)) * size
                part = [waiting.popleft() for _ in range(min(room, len(waiting)))]
                granted = ledger.claim(part, longest)
                waiting.extend(granted.busy)
                note([*granted.known.values()])
                for start in range(0, len(granted.mine), size):
                    flying.add(pool.submit(_ask, granted.mine[start : start + size], ledger, engine))
                if granted.busy and not flying:
                    time.sleep(_LOOK_AGAIN_SECONDS)
                done, flying = wait(flying, _LOOK_AGAIN_SECONDS if granted.busy else None, FIRST_COMPLETED)
                note(ledger.settle(_rows_of(done)))
                for future in done:
                    future.result()  # raises its error, now that the others' answers are kept
                watch.check()
        except BaseException:  # what is under way is paid; what was in a row without an answer is asked again
            done, _ = wait({future for future in flying if not future.cancel()})
            in_a_row = watch.in_a_row if len(watch.in_a_row) >= _MORE_THAN_CHANCE else []
            ledger.settle([*_rows_of(done), *(row._replace(status="failed") for row in in_a_row)])
            ledger.release()
            raise
    return found


def _rows_of(done: Iterable[Future[list[Row]]]) -> list[Row]:
    """The rows of calls that came to an end."""
    return [row for future in done if not future.exception() for row in future.result()]
