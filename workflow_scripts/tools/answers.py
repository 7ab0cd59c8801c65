"""Look at the ledger of answers of translators and language models, mend and move it.

    stats     what it holds: rows and cost by engine, direction, status and reason; requests of the last day
    verify    read everything; an error if anything is damaged
    show      rows; with --json all that is known of each, as many as --most says
    forget    take rows out, so that their requests are asked again
    merge     add every whole row of other files, also of damaged ones: merge FILE ...

Rows are chosen by --status, --reason, --engine and --matching, a regular expression searched in text and answer.

  python -m workflow_scripts answers show --status rejected
"""

import argparse
import json
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from workflow_scripts.apis.ledger import COLUMNS, Ledger, Row, ledger_path, unpacked
from workflow_scripts.audit.printing import Answer, Rows, argument
from workflow_scripts.errors import DataError

_SHOWN = ("engine", "status", "reason", "text", "answer")
"""Columns of rows that people are shown."""
Given = Mapping[str, Any]
"""Values of the command line, by name."""


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"no regular expression: {error}") from error


def stats(path: Path, _given: Given) -> Answer:
    """Counts, cost and budgets."""
    rows, cost = Counter[tuple[str, ...]](), defaultdict[tuple[str, ...], float](float)
    with Ledger(path) as ledger:
        for row in ledger.rows():
            direction = f"{row.request.source} to {row.request.target}" if row.request.target else "prompts"
            kind = (row.request.engine, row.request.model, direction, row.status, row.reason)
            rows[kind] += 1
            cost[kind] += row.cost_usd or 0.0
        lines = [f"{provider}: {sent:,} requests on {day} (UTC)" for provider, day, sent in ledger.spent()]
    names = ("engine", "model", "direction", "status", "reason", "rows", "USD")
    counted = [
        dict(zip(names, (*kind, count, cost[kind] or None), strict=True))
        for kind, count in sorted(rows.items())
    ]
    size = path.stat().st_size / 1e6
    said = f"{rows.total():,} rows, {sum(cost.values()):.4f} USD where known, {size:.1f} MB"
    return Answer(said, parts=[Rows("answers", counted), *lines])


def verify(path: Path, _given: Given) -> Answer:
    """Read everything, and say that it is whole."""
    with Ledger(path, read_only=True) as ledger:
        return Answer(f"{path}: {ledger.check():,} rows, all whole")


def show(path: Path, given: Given) -> Answer:
    """Some rows."""
    with Ledger(path) as ledger:
        found = list(islice(chosen(ledger, given), given["most"] + 1))
    rows = [row.request._asdict() | row._asdict() for row in found[: given["most"]]]
    for row in rows:
        del row["request"]
        row["attributes"] = json.loads(row["attributes"])
    shown = [{name: row[name] for name in _SHOWN} for row in rows]
    more = f"and more; --most {len(rows)}" if len(found) > len(rows) else f"{len(rows)} rows"
    return Answer(more, parts=[Rows("rows", shown)], data={"rows": rows})


def forget(path: Path, given: Given) -> Answer:
    """Take out what was chosen; all of it only where something was said of it."""
    if not any(given[name] for name in ("status", "reason", "engine", "matching")):
        raise DataError(f"{path}: forget what? Say --status, --reason, --engine or --matching.")
    with Ledger(path) as ledger:
        requests = [row.request for row in chosen(ledger, given)]
        ledger.forget(requests)
    return Answer(f"{path}: {len(requests):,} rows forgotten; their requests will be asked again")


def chosen(ledger: Ledger, given: Given) -> Iterator[Row]:
    """The rows that the command line describes."""
    wanted = {name: value for name in ("engine", "status", "reason") if (value := given[name])}
    for row in ledger.rows():
        known = row.request._asdict() | row._asdict()
        found = not given["matching"] or given["matching"].search(f"{known['text']}\n{row.answer or ''}")
        if found and all(known[name] == value for name, value in wanted.items()):
            yield row


def merge(path: Path, given: Given) -> Answer:
    """Add what is whole; of two rows for a request the usable one stays, or else the one that was there."""
    if not given["files"]:
        raise DataError("merge: of which files? Name them: answers merge FILE ...")
    for other in given["files"]:
        if not other.is_file() or other.resolve() == path.resolve():
            found = "the ledger itself" if other.is_file() else "no such file"
            raise DataError(f"{other}: {found}. Name another.")
    read = {other: whole_rows(other) for other in given["files"]}
    if empty := [other for other, rows in read.items() if not rows]:
        raise DataError(f"{empty[0]}: no whole row can be read. Nothing was done. Name another.")
    lines = []
    with Ledger(path) as ledger:
        for other, rows in read.items():
            known = ledger.find([row.request for row in rows.values()])
            ledger.settle([row for key, row in rows.items() if key not in known or row.status == "usable"])
            lines.append(f"{other}: {len(rows):,} whole rows")
        return Answer(f"{path} holds {len(ledger):,}", parts=lines)


def whole_rows(path: Path) -> dict[bytes, Row]:
    """Every row of a file that can be read and is as it was written."""
    found = {packed[0]: unpacked(packed) for packed in _readable(path)}
    return {key: row for key, row in found.items() if row is not None}


def _readable(path: Path) -> Iterator[tuple[Any, ...]]:
    """Rows read from both ends, since nothing can be read past a damaged page; some come twice."""
    for order in ("ASC", "DESC"):
        with closing(sqlite3.connect(path.absolute().as_uri() + "?mode=ro", uri=True)) as database:
            database.text_factory = lambda text: text.decode(errors="replace")  # then the checksum is wrong
            with suppress(sqlite3.DatabaseError):
                yield from database.execute(f"SELECT {COLUMNS} FROM requests ORDER BY rowid {order}")


COMMANDS: dict[str, Callable[[Path, Given], Answer]] = {
    "stats": stats,
    "verify": verify,
    "show": show,
    "forget": forget,
    "merge": merge,
}


ARGUMENTS = (
    argument("command", choices=COMMANDS, help="see above"),
    argument("files", type=Path, nargs="*", metavar="FILE", help="of merge"),
    argument("--ledger", type=Path, help="file; default: the one that jobs use"),
    argument("--status", choices=["usable", "rejected", "refused", "failed"]),
    argument("--reason", help="the whole reason, as stats prints it"),
    argument("--engine", help="google, libretranslate, apertium, openai, llm"),
    argument("--matching", type=_pattern, help="searched in text and answer"),
    argument("--most", type=int, default=20, help="rows to show (default: %(default)s)"),
)


def answer(command: str, ledger: Path | None, **given: Any) -> Answer:
    """What the command says."""
    path = ledger or ledger_path()
    if path.is_dir() or (command != "merge" and not path.is_file()):
        raise DataError(
            f"{path}: no such file; nothing has been asked from this folder. Name another: --ledger FILE."
        )
    return COMMANDS[command](path, given)
