"""List the requests to translators and language models, with their answers and costs.

    stats     rows and cost by engine, direction, status and reason; requests of the last day
    show      rows; with --json everything known of each, as many as --most says

Rows are chosen by --status, --reason, --engine and --matching, a regular expression searched in text and answer. Both
commands read rows with their checksums, and end with an error at a damaged one.

  python -m workflow_scripts answers show --status rejected
"""

import argparse
import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from workflow_scripts.apis.ledger import Ledger, Row, ledger_path
from workflow_scripts.errors import DataError
from workflow_scripts.verbs.printing import Answer, Rows, argument

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
    names = ["engine", "model", "direction", "status", "reason"]
    with Ledger(path) as ledger:
        each = [(*_kind(row), 1, row.cost_usd or 0.0) for row in ledger.rows()]
        lines = [f"{provider}: {sent:,} requests on {day} (UTC)" for provider, day, sent in ledger.spent()]
    frame = pd.DataFrame(each, columns=[*names, "rows", "USD"])
    rows = frame.groupby(names, as_index=False).sum().to_dict("records")
    counted = [
        {str(name): value or None if name == "USD" else value for name, value in row.items()} for row in rows
    ]
    said = f"{len(each):,} rows, {frame['USD'].sum():.4f} USD where known, {path.stat().st_size / 1e6:.1f} MB"
    return Answer(said, parts=[Rows("answers", counted), *lines])


def _kind(row: Row) -> tuple[str, ...]:
    """The values that rows are counted by."""
    asked = row.request
    direction = f"{asked.source} to {asked.target}" if asked.target else "prompts"
    return asked.engine, asked.model, direction, row.status, row.reason


def show(path: Path, given: Given) -> Answer:
    """Rows of the ledger that match the options."""
    with Ledger(path) as ledger:
        found = list(islice(chosen(ledger, given), given["most"] + 1))
    rows = [row.request._asdict() | row._asdict() for row in found[: given["most"]]]
    for row in rows:
        del row["request"]
        row["attributes"] = json.loads(row["attributes"])
    shown = [{name: row[name] for name in _SHOWN} for row in rows]
    more = f"and more; --most {len(rows)}" if len(found) > len(rows) else f"{len(rows)} rows"
    return Answer(more, parts=[Rows("rows", shown)], data={"rows": rows})


def chosen(ledger: Ledger, given: Given) -> Iterator[Row]:
    """The rows that the command line describes."""
    wanted = {name: value for name in ("engine", "status", "reason") if (value := given[name])}
    for row in ledger.rows():
        known = row.request._asdict() | row._asdict()
        found = not given["matching"] or given["matching"].search(f"{known['text']}\n{row.answer or ''}")
        if found and all(known[name] == value for name, value in wanted.items()):
            yield row


COMMANDS: dict[str, Callable[[Path, Given], Answer]] = {"stats": stats, "show": show}


ARGUMENTS = (
    argument("command", choices=COMMANDS, help="what to print, as above"),
    argument("--ledger", type=Path, metavar="FILE", help="default: the one that jobs use"),
    argument("--status", choices=["usable", "rejected", "refused", "failed"]),
    argument("--reason", help="the whole reason, as stats prints it"),
    argument("--engine", help="google, libretranslate, apertium, openai, llm"),
    argument("--matching", type=_pattern, metavar="PATTERN", help="searched in text and answer"),
    argument("--most", type=int, default=20, metavar="N", help="rows to show; default: %(default)s"),
)


def answer(command: str, ledger: Path | None, **given: Any) -> Answer:
    """Answer of the verb."""
    path = ledger or ledger_path()
    if not path.is_file():
        raise DataError(
            f"{path}: no such file; nothing has been asked from this folder. Name another: --ledger FILE."
        )
    return COMMANDS[command](path, given)
