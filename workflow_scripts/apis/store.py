"""What translators and language models answered, kept once and for ever under the hash of the request.

Answers cost money or hours, and a job that fails loses its outputs; so they are kept outside any rule's
output, in one SQLite file that several jobs may write at once. An answer is in the file when ``settle``
returns, whatever kills the process after that; nothing in it is ever changed or taken out. Of two
answers to one request the first to arrive counts, also for the job that brought the second.
"""

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workflow_scripts.errors import DataError

_TABLES = """
CREATE TABLE IF NOT EXISTS answers (request BLOB PRIMARY KEY, answer TEXT NOT NULL);
CREATE TRIGGER IF NOT EXISTS unchanged BEFORE UPDATE ON answers BEGIN SELECT RAISE(ABORT, 'append only'); END;
CREATE TRIGGER IF NOT EXISTS kept BEFORE DELETE ON answers BEGIN SELECT RAISE(ABORT, 'append only'); END;
"""
_AT_ONCE = 500  # requests of one query; SQLite allows 32,766 variables, and older ones 999
_BUSY_SECONDS = 120  # that a writer waits for another one's transaction, which takes milliseconds


def key_of(request: Mapping[str, Any]) -> bytes:
    """Hash of all that decides an answer: engine, version, languages or prompt, text, settings."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).digest()


def store_path() -> Path:
    """Where answers are kept: environment variable SEMBLANCE_ANSWERS, which the setting ``answers`` sets."""
    return Path(os.environ.get("SEMBLANCE_ANSWERS", "answers/answers.sqlite"))


def is_offline() -> bool:
    """Whether only kept answers count: environment variable SEMBLANCE_OFFLINE, which the setting ``offline`` sets."""
    return os.environ.get("SEMBLANCE_OFFLINE", "") not in ("", "0")


class AnswerStore:
    """Answers by the key of their request."""

    def __init__(self, path: Path) -> None:
        """Open the store at ``path``, which is made if it is not there.

        Raises:
            DataError: if the file is something else, or damaged.
        """
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._readable():
            self._database = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
            # Write-ahead log: readers never wait, and a killed writer leaves nothing to repair. NORMAL: a loss of
            # power may cost the last answers, but no process's death does.
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._database.executescript(_TABLES)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise DataError(
                f"{self._path}: {error}. Move the file away; its answers are asked anew."
            ) from error

    def find(self, keys: Sequence[bytes]) -> dict[bytes, str]:
        """The answers to those of ``keys`` that have one."""
        found: dict[bytes, str] = {}
        with self._readable():
            for start in range(0, len(keys), _AT_ONCE):
                part = keys[start : start + _AT_ONCE]
                marks = ",".join("?" * len(part))
                query = f"SELECT request, answer FROM answers WHERE request IN ({marks})"
                found.update(self._database.execute(query, part))
        return found

    def settle(self, answers: Mapping[bytes, str]) -> dict[bytes, str]:
        """Keep ``answers``, all or none; returns what the store now holds for their keys."""
        with self._readable():
            self._database.execute("BEGIN IMMEDIATE")
            with self._database:  # commits, or rolls back on an error
                self._database.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?)", answers.items())
        return self.find(list(answers))

    def __len__(self) -> int:
        """Number of answers."""
        with self._readable():
            return int(self._database.execute("SELECT count(*) FROM answers").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> "AnswerStore":
        """Use as a context manager."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the file."""
        self.close()
