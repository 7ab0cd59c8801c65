"""Rows that a training writes next to its log while it runs, and event files of TensorBoard if it is installed.

The rows are those of the history that the training writes at its end, with two columns of timing. They are not an
artefact: only people and ``watch`` read them. So this module is part of no job's key (``provenance.closure.UNKEYED``),
and no failure here ends a training.
"""

import math
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from workflow_scripts.provenance.running import beside

Row = tuple[float, ...]
"""A row of the history (``columns.HISTORY``): step, loss, learning rate, gradient norm, and score or nan."""
_SCALARS = ("loss", "learning_rate", "gradient_norm", "dev_score")
COLUMNS = ("step", "steps", *_SCALARS, "steps_per_second", "time")
"""Columns of the file; ``steps`` is the planned length, and the last two columns differ from run to run."""


@contextmanager
def following(log: Path | None, steps: int, rows: Sequence[Row]) -> Iterator[Callable[[], None]]:
    """Yield a function that writes the new entries of ``rows`` since its last call; without a log, it does nothing.

    Args:
        log: The job's log; the files are next to it (``provenance.running.beside``).
        steps: Planned steps.
        rows: All rows of the training, which grow while it runs. Present rows are from a checkpoint: the file then
            starts with only these rows, whatever was in it before.
    """
    follower: _Follower | None = None

    def write() -> None:
        nonlocal follower
        try:
            if follower:
                follower.write()
        except Exception as error:  # such as a full disk, or an error of an optional package
            _say(error)
            follower = None

    try:
        follower = _Follower(log, steps, rows) if log else None
    except Exception as error:
        _say(error)
    try:
        yield write
    finally:
        write()  # the rows before an error
        if follower:
            follower.close()


def _say(error: Exception) -> None:
    print(f"rows next to the log: {error}. The training continues without them.", file=sys.stderr)  # noqa: T201


class _Follower:
    """Writer of the files of one training."""

    def __init__(self, log: Path, steps: int, rows: Sequence[Row]) -> None:
        table, events = beside(log)
        self._steps, self._rows, self._written = steps, rows, len(rows)
        self._file, is_complete = self._reopened(table)
        self._clock = time.perf_counter()
        self._events: Any = None
        if not rows or not is_complete:
            shutil.rmtree(events, ignore_errors=True)  # removes events of another training
        if find_spec("tensorboard"):
            # By name: an optional package is not part of the job's code.
            tensorboard = import_module("torch.utils.tensorboard")
            self._events = tensorboard.SummaryWriter(str(events), purge_step=len(rows) + 1)
            self._add_events(() if is_complete else rows)

    def _reopened(self, table: Path) -> tuple[Any, bool]:
        """Return the file with the rows of the checkpoint, and whether it already had all of them, with timing."""
        before = table.read_text("utf-8").splitlines() if table.exists() else []
        timed = {line.rsplit(",", 2)[0]: line for line in before}
        plain = [self._cells(row) for row in self._rows]
        lines = [",".join(COLUMNS), *(timed.get(cells, f"{cells},,") for cells in plain)]
        temporary = table.with_suffix(".csv.new")
        temporary.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        temporary.replace(table)
        return table.open("a", encoding="utf-8"), all(cells in timed for cells in plain)

    def write(self) -> None:
        """Append the new rows."""
        new = self._rows[self._written :]
        if not new:
            return
        clock = time.perf_counter()
        rate = len(new) / max(clock - self._clock, 1e-9)
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._file.write("".join(f"{self._cells(row)},{rate:.4g},{now}\n" for row in new))
        self._file.flush()
        self._written, self._clock = len(self._rows), clock
        self._add_events(new)

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        if self._events:
            self._events.close()

    def _cells(self, row: Row) -> str:
        """Return the cells of a line, without timing."""
        step, *values = row
        cells = ("" if math.isnan(value) else f"{value:.9g}" for value in values)
        return ",".join([str(int(step)), str(self._steps), *cells])

    def _add_events(self, rows: Iterable[Row]) -> None:
        for step, *values in rows if self._events else ():
            for name, value in zip(_SCALARS, values, strict=True):
                if not math.isnan(value):
                    self._events.add_scalar(name, value, int(step))
