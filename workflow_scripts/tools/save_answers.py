"""Save the undamaged answers of a damaged store: python -m workflow_scripts.tools.save_answers answers/answers.sqlite.

They are written to a new store beside it, ``answers.sqlite.saved``; nothing is done to the damaged one. Move the new
one into its place to use it: only what was damaged will be requested again.
"""

import argparse
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from workflow_scripts.apis.store import AnswerStore, is_whole
from workflow_scripts.errors import DataError, one_line_errors


def whole_answers(path: Path) -> Iterator[tuple[bytes, str]]:
    """Requests and answers of every row that can be read and has the right checksum, some of them twice.

    The rows are read from both ends, since nothing can be read beyond a damaged page.
    """
    for order in ("ASC", "DESC"):
        with closing(sqlite3.connect(path.absolute().as_uri() + "?mode=ro", uri=True)) as database:
            database.text_factory = lambda text: text.decode(errors="replace")  # then the checksum is wrong
            with suppress(sqlite3.DatabaseError):
                query = f"SELECT request, answer, checksum FROM answers ORDER BY rowid {order}"
                yield from (row[:2] for row in database.execute(query) if is_whole(*row))


def save(path: Path) -> int:
    """Copy what is whole into a new store; returns the number of answers.

    Raises:
        DataError: if the new store exists already, or nothing can be saved.
    """
    saved = path.with_name(f"{path.name}.saved")
    if saved.exists():
        raise DataError(f"{saved}: exists already. Move it away, and run this again.")
    answers = dict(whole_answers(path)) if path.is_file() else {}
    if not answers:
        raise DataError(
            f"{path}: no whole answer can be read. Move the file away; all will be requested again."
        )
    with AnswerStore(saved) as store:
        store.settle(answers)
        return len(store)


def main() -> None:
    """Save, and say how many answers there are."""
    parser = argparse.ArgumentParser(
        prog="python -m workflow_scripts.tools.save_answers", description=__doc__
    )
    parser.add_argument("store", type=Path, help="a damaged store")
    path = parser.parse_args().store
    print(f"{path}.saved: {save(path)} whole answers")  # noqa: T201


if __name__ == "__main__":
    with one_line_errors():
        main()
