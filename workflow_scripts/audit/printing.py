"""Tables and JSON on standard output, as every command of the audit prints them."""

import json
import os
import sys
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

_PIPE_WIDTH = 240  # paths stay on one line in a file or a pipe, where nothing folds them


def table(*columns: str, numbers: Iterable[str] = ()) -> Table:
    """An empty table that folds long paths; the columns in ``numbers`` are right-aligned."""
    made = Table(show_edge=False, pad_edge=False)
    for column in columns:
        made.add_column(column, overflow="fold", justify="right" if column in set(numbers) else "left")
    return made


def console(pipe_width: int = _PIPE_WIDTH) -> Console:
    """Standard output; ``pipe_width`` wide where it is neither a terminal nor as wide as COLUMNS says."""
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if known else pipe_width, highlight=False, markup=False, emoji=False)


def print_json(data: object) -> None:
    """Write ``data`` to standard output as JSON."""
    write(json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def write(text: str) -> None:
    """Write ``text`` to standard output; ends the process where nobody reads any more, as behind head."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at its end
        sys.exit(1)
