"""How far some work is: a bar in a terminal, and in a log a line now and then."""

import sys
import time
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from tqdm import tqdm

_PARTS = 10
"""Lines of a log, at most, as long as they do not come too far apart."""
_SOONEST_SECONDS = 5.0
_LATEST_SECONDS = 600.0


class Progress(AbstractContextManager["Progress"]):
    """A count of ``unit``s up to ``total``, to be used in a ``with``.

    Args:
        total: How many there are.
        what: What is done, first on every line.
        unit: What is counted, in the singular.
        done: How many are done already.
        hidden: Show nothing.
        brief: Leave no line in a log if all is done within seconds.
    """

    def __init__(
        self, total: int, what: str, unit: str, *, done: int = 0, hidden: bool = False, brief: bool = False
    ) -> None:
        self._total, self._what, self._unit = total, what, unit
        self._first = self._done = done
        self._note = ""
        self._began = self._said = time.monotonic()
        self._part = 0
        self._hidden = hidden
        self._soonest = _SOONEST_SECONDS if brief else 0.0
        shown = not hidden and sys.stderr.isatty()
        self._bar: Any = tqdm(total=total, initial=done, desc=what, unit=unit) if shown else None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bar away, or leave a last line in the log."""
        if self._bar is not None:
            self._bar.close()
        elif not self._hidden and self._done > self._first and self._seconds() >= self._soonest:
            self._say()

    def update(self, count: int = 1, note: str = "") -> None:
        """Count ``count`` more; ``note`` stands at the end of the line until another one takes its place."""
        self._done += count
        self._note = note or self._note
        if self._bar is not None:
            self._bar.set_postfix_str(self._note, refresh=False)
            self._bar.update(count)
        elif not self._hidden:
            self._say_if_due()

    def _say_if_due(self) -> None:
        part = _PARTS * self._done // max(self._total, 1)
        since = time.monotonic() - self._said
        if part < _PARTS and ((part > self._part and since >= _SOONEST_SECONDS) or since >= _LATEST_SECONDS):
            self._part = part
            self._say()

    def _seconds(self) -> float:
        return time.monotonic() - self._began

    def _say(self) -> None:
        self._said = time.monotonic()
        note = f", {self._note}" if self._note else ""
        counted = f"{self._done:,} of {self._total:,} {self._unit}s"
        print(f"{self._what}: {counted}, {self._seconds():.0f} s{note}", file=sys.stderr)  # noqa: T201
