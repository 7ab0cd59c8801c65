"""Look at the ledger of answers, mend and move it: python -m workflow_scripts.tools.answers COMMAND.

    stats     what it holds: rows and cost by engine, direction, status and reason; requests of the last day
    verify    read everything; exit code 1 if anything is damaged
    show      rows, as JSON lines
    forget    take rows out, so that their requests are asked again
    export    all columns as Parquet
    merge     add every whole row of other files, also of damaged ones and those of earlier versions

Rows are chosen by --status, --reason, --engine and --matching, a regular expression searched in text and answer.
"""

import argparse
import json
import re
import sqlite3
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.table import Table

from workflow_scripts.apis.ledger import Ledger, Request, Row, is_whole_earlier, ledger_path, unpacked
from workflow_scripts.audit.lookup import check_file_place
from workflow_scripts.audit.printing import console, write
from workflow_scripts.errors import DataError, one_line_errors
from workflow_scripts.provenance.artefacts import atomic

EXPORTED = pa.schema(
    [
        *((name, pa.string()) for name in ("engine", "model", "source", "target", "text", "settings")),
        *((name, pa.string()) for name in ("answer", "status", "reason")),
        ("cost_usd", pa.float64()),
        ("attributes", pa.string()),
        ("asked_at", pa.string()),
    ]
)
"""Columns of an exported ledger, as in ``apis.ledger.Request`` and ``Row``."""
_AT_ONCE = 10_000  # rows in memory


def main() -> None:
    """Do what the command says."""
    arguments = _parser().parse_args()
    path: Path = arguments.ledger
    if arguments.command == "merge" or path.is_dir():
        check_file_place(path)
    elif not path.is_file():
        raise DataError(f"{path}: no such file. Name one: --ledger FILE.")
    COMMANDS[arguments.command](path, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m workflow_scripts.tools.answers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--ledger", type=Path, default=ledger_path(), help="file (default: %(default)s)")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("stats", help="what it holds")
    commands.add_parser("verify", help="read everything")
    for name, does in (("show", "print rows"), ("forget", "take rows out")):
        command = commands.add_parser(name, help=does)
        command.add_argument("--status", choices=["usable", "rejected", "refused", "failed"])
        command.add_argument("--reason", help="the whole reason, as stats prints it")
        command.add_argument("--engine", help="google, libretranslate, apertium, openai, llm")
        command.add_argument("--matching", type=_pattern, help="searched in text and answer")
        if name == "show":
            command.add_argument("--most", type=int, default=20, help="rows to print (default: %(default)s)")
    commands.add_parser("export", help="all columns as Parquet").add_argument("parquet", type=Path)
    command = commands.add_parser("merge", help="add the rows of other files")
    command.add_argument("others", type=Path, nargs="+")
    return parser


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"no regular expression: {error}") from error


def stats(path: Path, _arguments: argparse.Namespace) -> None:
    """Print counts, cost and budgets."""
    with Ledger(path) as ledger:
        rows: Counter[tuple[str, ...]] = Counter()
        cost: dict[tuple[str, ...], float] = defaultdict(float)
        for row in ledger.rows():
            direction = f"{row.request.source} to {row.request.target}" if row.request.target else "prompts"
            kind: tuple[str, ...] = (row.request.engine, row.request.model, direction, row.status, row.reason)
            rows[kind] += 1
            cost[kind] += row.cost_usd or 0.0
        table = Table("engine", "model", "direction", "status", "reason", "rows", "USD", box=None)
        for kind, count in sorted(rows.items()):
            table.add_row(*kind, f"{count:,}", f"{cost[kind]:.4f}" if cost[kind] else "")
        console(160).print(table)
        size = path.stat().st_size / 1e6
        print(f"{rows.total():,} rows, {sum(cost.values()):.4f} USD where known, {size:.1f} MB")  # noqa: T201
        if earlier := ledger.earlier_answers():
            print(f"{earlier:,} answers of an earlier version, used when their requests are asked for")  # noqa: T201
        for provider, day, sent in ledger.spent():
            print(f"{provider}: {sent:,} requests on {day} (UTC)")  # noqa: T201


def verify(path: Path, _arguments: argparse.Namespace) -> None:
    """Read everything, and say that it is whole."""
    with Ledger(path, read_only=True) as ledger:
        print(f"{path}: {ledger.check():,} rows, all whole")  # noqa: T201


def show(path: Path, arguments: argparse.Namespace) -> None:
    """Print rows as JSON lines."""
    with Ledger(path) as ledger:
        for number, row in enumerate(chosen(ledger, arguments), start=1):
            if number > arguments.most:
                print(f"and more; --most {arguments.most}", file=sys.stderr)  # noqa: T201
                break
            shown = row.request._asdict() | row._asdict() | {"attributes": json.loads(row.attributes)}
            del shown["request"]
            write(json.dumps(shown, ensure_ascii=False) + "\n")


def forget(path: Path, arguments: argparse.Namespace) -> None:
    """Take out what was chosen; all of it only where something was said of it."""
    if not any((arguments.status, arguments.reason, arguments.engine, arguments.matching)):
        raise DataError(f"{path}: forget what? Say --status, --reason, --engine or --matching.")
    with Ledger(path) as ledger:
        requests = [row.request for row in chosen(ledger, arguments)]
        ledger.forget(requests)
    print(f"{path}: {len(requests):,} rows forgotten; their requests will be asked again")  # noqa: T201


def chosen(ledger: Ledger, arguments: argparse.Namespace) -> Iterator[Row]:
    """The rows that the command line describes."""
    wanted = {name: getattr(arguments, name) for name in ("status", "reason") if getattr(arguments, name)}
    for row in ledger.rows():
        if any(getattr(row, name) != value for name, value in wanted.items()):
            continue
        if arguments.engine and row.request.engine != arguments.engine:
            continue
        if arguments.matching and not arguments.matching.search(f"{row.request.text}\n{row.answer or ''}"):
            continue
        yield row


def export(path: Path, arguments: argparse.Namespace) -> None:
    """Write all rows, some thousands at a time."""
    check_file_place(arguments.parquet)
    with (
        Ledger(path) as ledger,
        atomic(arguments.parquet) as temporary,
        pq.ParquetWriter(temporary, EXPORTED, compression="zstd") as writer,
    ):
        part: list[dict[str, Any]] = []
        count = 0
        for row in ledger.rows():
            count += 1
            part.append(row.request._asdict() | row._asdict())
            if len(part) == _AT_ONCE:
                writer.write_table(pa.Table.from_pylist(part, schema=EXPORTED))
                part = []
        writer.write_table(pa.Table.from_pylist(part, schema=EXPORTED))
    print(f"{arguments.parquet}: {count:,} rows")  # noqa: T201


def merge(path: Path, arguments: argparse.Namespace) -> None:
    """Add what is whole; of two rows for a request the usable one stays, or else the one that was there."""
    for other in arguments.others:
        if not other.is_file() or other.resolve() == path.resolve():
            raise DataError(
                f"{other}: {'the ledger itself' if other.is_file() else 'no such file'}. Name another."
            )
    read = {other: (whole_rows(other), whole_earlier(other)) for other in arguments.others}
    if empty := [other for other, found in read.items() if not any(found)]:
        raise DataError(f"{empty[0]}: no whole row can be read. Nothing was done. Name another.")
    with Ledger(path) as ledger:
        for other, (rows, earlier) in read.items():
            known = ledger.find([row.request for row in rows.values()])
            new = [row for key, row in rows.items() if key not in known or row.status == "usable"]
            ledger.settle(new)
            ledger.take_earlier(earlier.items())
            kept = f", {len(earlier):,} answers of an earlier version" if earlier else ""
            print(f"{other}: {len(rows):,} whole rows{kept}; {path} holds {len(ledger):,}")  # noqa: T201


def whole_rows(path: Path) -> dict[bytes, Row]:
    """Every row of a file that can be read and is as it was written."""
    columns = ", ".join(
        [*Request._fields, "answer, status, reason, asked_at, cost_usd, attributes, checksum"]
    )
    query = f"SELECT key, {columns} FROM requests"
    found = {packed[0]: unpacked(packed) for packed in _readable(path, query)}
    return {key: row for key, row in found.items() if row is not None}


def whole_earlier(path: Path) -> dict[bytes, str]:
    """Every answer of an earlier version that can be read and is as it was written, by its request's hash."""
    tables = [f"SELECT request, answer, checksum FROM {table}" for table in ("earlier", "answers")]
    listed = [row for query in tables for row in _readable(path, query)]
    whole = {key: answer for key, answer, known in listed if is_whole_earlier(key, answer, known)}
    # The first stores had no checksums; where there are some, they have been looked at.
    return whole or dict(
        _readable(
            path,
            "SELECT request, answer FROM answers WHERE NOT EXISTS (SELECT * FROM "
            "pragma_table_info('answers') WHERE name = 'checksum')",
        )
    )


def _readable(path: Path, query: str) -> Iterator[tuple[Any, ...]]:
    """Lines of a table from both ends, since nothing can be read beyond a damaged page; some come twice."""
    for order in ("ASC", "DESC"):
        with closing(sqlite3.connect(path.absolute().as_uri() + "?mode=ro", uri=True)) as database:
            database.text_factory = lambda text: text.decode(errors="replace")  # then the checksum is wrong
            with suppress(sqlite3.DatabaseError):
                yield from database.execute(f"{query} ORDER BY rowid {order}")


COMMANDS: dict[str, Callable[[Path, argparse.Namespace], None]] = {
    "stats": stats,
    "verify": verify,
    "show": show,
    "forget": forget,
    "export": export,
    "merge": merge,
}


if __name__ == "__main__":
    with one_line_errors():
        main()
