"""Progress of long work: a bar in a terminal, or a line per minute in a log."""

import sys
from typing import Any

from tqdm import tqdm

_LINE = "{desc}: {n:,} of {total:,} {unit}s, {elapsed_s:.0f} s{postfix}"
_SECONDS = 60.0
"""Seconds between two lines of a log."""


class _Log:
    """Standard error as a log, in which each state of a bar is a separate line."""

    def write(self, text: str) -> None:
        """Write a line, without the characters that would overwrite the previous one."""
        if line := text.strip():
            print(line, file=sys.stderr)  # noqa: T201


class _LogBar(tqdm):  # type: ignore[misc]
    """A bar whose last state is printed only once, even if it was printed before the bar is closed."""

    def close(self) -> None:
        """Print the last state, unless it is already printed."""
        if not self.disable:
            self.leave = self.n > self.last_print_n
        super().close()


def progress(total: int, what: str, unit: str, **options: Any) -> Any:
    """Return a bar of ``tqdm`` that counts finished ``unit``s up to ``total``; its postfix ends the line.

    Args:
        total: Number of all units.
        what: Name of the work, first on every line.
        unit: Name of a unit, in the singular.
        options: Options of ``tqdm``: ``initial``, ``disable``, and ``delay`` for work that seldom takes long.
    """
    tqdm.monitor_interval = 0  # a thread that would refresh bars whose work stands still
    named = {"total": total, "desc": what, "unit": unit, "miniters": 1} | options
    if sys.stderr.isatty():
        return tqdm(**named)
    return _LogBar(**named, file=_Log(), mininterval=_SECONDS, bar_format=_LINE)
