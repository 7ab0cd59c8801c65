"""Progress of long work: a bar in a terminal, or occasional lines in a log."""

import sys
import time
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from tqdm import tqdm

_PARTS = 10
"""Maximum number of lines in a log, unless they would be too far apart."""
_MIN_SECONDS = 5.0
_MAX_SECONDS = 600.0


class Progress(AbstractContextManager["Progress"]):
    """A counter of finished ``unit``s up to ``total``, for a ``with`` statement.

    Args:
        total: Number of all units.
        what: Name of the work, first on every line.
        unit: Name of a unit, in the singular.
        done: Number of units that are done already.
        hidden: Show nothing.
        brief: Write no line to a log if the work takes only seconds.
    """

    def __init__(
        self, total: int, what: str, unit: str, *, done: int = 0, hidden: bool = False, brief: bool = False
    ) -> None:
        self._total, self._what, self._unit = total, what, unit
        self._first = self._done = done
        self._note = ""
        self._began = self._printed = time.monotonic()
        self._part = 0
        self._hidden = hidden
        self._min_seconds = _MIN_SECONDS if brief else 0.0
        has_bar = not hidden and sys.stderr.isatty()
        self._bar: Any = tqdm(total=total, initial=done, desc=what, unit=unit) if has_bar else None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the bar, or write a last line to the log."""
        if self._bar is not None:
            self._bar.close()
        elif not self._hidden and self._done > self._first and self._seconds() >= self._min_seconds:
            self._print()

    def update(self, count: int = 1, note: str = "") -> None:
        """Count ``count`` more units; ``note`` is shown at the end of the line until the next note."""
        self._done += count
        self._note = note or self._note
        if self._bar is not None:
            self._bar.set_postfix_str(self._note, refresh=False)
            self._bar.update(count)
        elif not self._hidden:
            part = _PARTS * self._done // max(self._total, 1)
            since = time.monotonic() - self._printed
            is_due = (part > self._part and since >= _MIN_SECONDS) or since >= _MAX_SECONDS
            if part < _PARTS and is_due:
                self._part = part
                self._print()

    def _seconds(self) -> float:
        return time.monotonic() - self._began

    def _print(self) -> None:
        self._printed = time.monotonic()
        note = f", {self._note}" if self._note else ""
        counted = f"{self._done:,} of {self._total:,} {self._unit}s"
        print(f"{self._what}: {counted}, {self._seconds():.0f} s{note}", file=sys.stderr)  # noqa: T201
