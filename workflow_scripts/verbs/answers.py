"""List or show what translators and language models were asked, and what they answered.

    stats     rows and cost by engine, direction, status and reason; requests of the last day
    show      rows; with --json all that is known of each, as many as --most says

Rows are chosen by --status, --reason, --engine and --matching, a regular expression searched in text and answer. Both
commands read rows with their checksums, and end with an error at a damaged one.

  python -m workflow_scripts answers show --status rejected
"""

import argparse
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

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
    argument("command", choices=COMMANDS, help="see above"),
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
    if not path.is_file():
        raise DataError(
            f"{path}: no such file; nothing has been asked from this folder. Name another: --ledger FILE."
        )
    return COMMANDS[command](path, given)
