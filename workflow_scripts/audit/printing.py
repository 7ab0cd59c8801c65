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
    sys.stdout.write(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
