"""List the requests to translators and language models, with their answers and costs.

    stats     rows and cost by engine, direction, status and reason; requests of the last day
    show      rows; with --json everything known of each, as many as --most says

Both commands read rows with their checksums, and end with an error at a damaged one.

  python -m workflow_scripts answers show --status rejected
"""

import json
from collections.abc import Iterator
from itertools import islice

import pandas as pd

from workflow_scripts.apis.ledger import Ledger, Row, ledger_path
from workflow_scripts.errors import DataError
from workflow_scripts.verbs.printing import Answer, Rows, argument

_SHOWN = ("engine", "status", "reason", "text", "answer")
"""Columns of rows that people are shown."""


def stats(ledger: Ledger, rows: Iterator[Row], size: int) -> Answer:
    """Counts and cost of rows, and the requests of the last day, of a ledger of some bytes."""
    names = ["engine", "model", "direction", "status", "reason"]
    each = [(*_kind(row), 1, row.cost_usd or 0.0) for row in rows]
    lines = [f"{provider}: {sent:,} requests on {day} (UTC)" for provider, day, sent in ledger.spent()]
    frame = pd.DataFrame(each, columns=[*names, "rows", "USD"])
    found = frame.groupby(names, as_index=False).sum().to_dict("records")
    counted = [
        {str(name): value for name, value in row.items()} | {"USD": row["USD"] or None} for row in found
    ]
    said = f"{len(each):,} rows, {frame['USD'].sum():.4f} USD where known, {size / 1e6:.1f} MB"
    return Answer(said, parts=[Rows("answers", counted), *lines])


def _kind(row: Row) -> tuple[str, ...]:
    """The values that rows are counted by."""
    asked = row.request
    direction = f"{asked.source} to {asked.target}" if asked.target else "prompts"
    return asked.engine, asked.model, direction, row.status, row.reason


def show(found: Iterator[Row], most: int) -> Answer:
    """The first rows, and whether there are more."""
    rows = [row.request._asdict() | row._asdict() for row in islice(found, most)]
    for row in rows:
        del row["request"]
        row["attributes"] = json.loads(row["attributes"])
    shown = [{name: row[name] for name in _SHOWN} for row in rows]
    more = f"{len(rows)} rows" if next(found, None) is None else f"and more; --most {len(rows)}"
    return Answer(more, parts=[Rows("rows", shown)], data={"rows": rows})


ARGUMENTS = (
    argument("command", choices=["stats", "show"], help="what to print, as above"),
    argument("--status", choices=["usable", "rejected", "refused", "failed"]),
    argument("--most", type=int, default=20, metavar="N", help="rows that show prints; default: %(default)s"),
)


def answer(command: str, status: str | None, most: int) -> Answer:
    """Answer of the verb."""
    path = ledger_path()
    if not path.is_file():
        raise DataError(
            f"{path}: no such file; nothing has been asked from this folder. Name another: SEMBLANCE_ANSWERS=FILE."
        )
    with Ledger(path) as opened:
        rows = (row for row in opened.rows() if status in (None, row.status))
        return show(rows, most) if command == "show" else stats(opened, rows, path.stat().st_size)
