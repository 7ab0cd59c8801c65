"""The store of answers from translators and language models, kept permanently under the hash of the request.

Answers cost money or hours, and a job that fails loses its outputs; so answers are kept outside any rule's output, in
one SQLite file that several jobs may write at once. When ``settle`` returns, an answer is in the file even if the
process is killed afterwards; entries are never changed or deleted. If two jobs bring an answer to the same request,
the first one is kept and both jobs use it.

Each row carries a checksum of request and answer, so that a damaged answer is not used. A damaged request would be
asked, and paid, again without a word; so before a process believes that an answer is missing, it has read the whole
file once and found it undamaged.
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

_TABLE = "CREATE TABLE answers (request BLOB PRIMARY KEY, answer TEXT NOT NULL, checksum BLOB)"
_TRIGGERS = (
    "CREATE TRIGGER unchanged BEFORE UPDATE ON answers BEGIN SELECT RAISE(ABORT, 'append only'); END",
    "CREATE TRIGGER kept BEFORE DELETE ON answers BEGIN SELECT RAISE(ABORT, 'append only'); END",
)
_COLUMNS = [("request", "BLOB"), ("answer", "TEXT"), ("checksum", "BLOB")]
_WITHOUT_CHECKSUM = _COLUMNS[:2]  # as stores were before rows had checksums
_OBJECTS = {"answers", "sqlite_autoindex_answers_1", "unchanged", "kept"}
_NO_DAMAGE = (
    "SQLITE_FULL",
    "SQLITE_BUSY",
    "SQLITE_LOCKED",
    "SQLITE_READONLY",
    "SQLITE_CANTOPEN",
    "SQLITE_IOERR",
)
_AT_ONCE = 500  # requests in one query; SQLite allows 32,766 variables, older versions 999
_BUSY_SECONDS = 120  # longest wait for another writer's transaction, which takes milliseconds


def key_of(request: Mapping[str, Any]) -> bytes:
    """Hash of everything that determines an answer: engine, version, languages or prompt, text, settings."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).digest()


def store_path() -> Path:
    """Where answers are kept: environment variable SEMBLANCE_ANSWERS, which the setting ``answers`` sets."""
    return Path(os.environ.get("SEMBLANCE_ANSWERS", "answers/answers.sqlite"))


def is_offline() -> bool:
    """Whether only stored answers may be used: variable SEMBLANCE_OFFLINE, which the setting ``offline`` sets."""
    return os.environ.get("SEMBLANCE_OFFLINE", "") not in ("", "0")


def checksum(request: bytes, answer: str) -> bytes:
    """What a row must carry: 16 bytes of the hash of request and answer."""
    return hashlib.sha256(request + answer.encode("utf-8", "surrogatepass")).digest()[:16]


def is_whole(request: object, answer: object, known: object) -> bool:
    """Whether a row is as it was written; damage may have changed even the types of its values."""
    return isinstance(request, bytes) and isinstance(answer, str) and checksum(request, answer) == known


class AnswerStore:
    """Answers by the key of their request."""

    def __init__(self, path: Path) -> None:
        """Open the store at ``path``, or create it; rows of one without checksums are given theirs.

        Raises:
            DataError: if the file is not a store, or damaged.
        """
        self._path = path
        self._checked = False
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._readable():
            self._database = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
            # Write-ahead log: readers never wait, and a killed writer leaves nothing to repair. NORMAL: a power cut
            # may lose the last answers, but the death of a process does not.
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            if not self._is_ready():
                with self._writing():
                    self._prepare()

    def _is_ready(self) -> bool:
        return self._columns() == _COLUMNS and self._objects() == _OBJECTS

    def _prepare(self) -> None:
        """Make the table in a new file, or add the checksums to an old one, unless another process just has."""
        if self._is_ready():
            return
        if not self._objects():
            self._database.execute(_TABLE)
        elif self._columns() == _WITHOUT_CHECKSUM:
            self._check_pages()
            self._add_checksums()
        else:
            raise self._damaged("its tables are not those of a store")
        for trigger in _TRIGGERS:
            self._database.execute(trigger)

    def _add_checksums(self) -> None:
        self._database.create_function("row_checksum", 2, checksum, deterministic=True)
        for trigger in ("unchanged", "kept"):
            self._database.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        self._database.execute("ALTER TABLE answers ADD COLUMN checksum BLOB")
        self._database.execute("UPDATE answers SET checksum = row_checksum(request, answer)")

    def _columns(self) -> list[tuple[str, str]]:
        return [(row[1], row[2]) for row in self._database.execute("PRAGMA table_info(answers)")]

    def _objects(self) -> set[str]:
        return {name for (name,) in self._database.execute("SELECT name FROM sqlite_master")}

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction, which no other writer comes between; it is kept whole or not at all."""
        self._database.execute("BEGIN IMMEDIATE")
        with self._database:  # commits, or rolls back on an error
            yield

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorname", "")  # an answer that is no UTF-8 has none
            if code.startswith(_NO_DAMAGE):
                raise DataError(
                    f"{self._path}: {error}. Check free space, permissions and who else writes; run it again."
                ) from error
            raise self._damaged(str(error)) from error

    def _damaged(self, found: str) -> DataError:
        return DataError(
            f"{self._path}: damaged ({found}). Put back a copy, or save the answers that are whole: "
            f"python -m workflow_scripts.tools.save_answers {self._path}"
        )

    def _check_pages(self) -> None:
        """Read the whole file and compare its index with its rows.

        Raises:
            DataError: if SQLite finds anything wrong.
        """
        ((found,),) = self._database.execute("PRAGMA integrity_check(1)").fetchall()
        if found != "ok":
            raise self._damaged(found)

    def _check_all(self) -> None:
        """Check the file and every row, once.

        Raises:
            DataError: if anything is damaged.
        """
        if not self._checked:
            self._check_pages()
            rows = self._database.execute("SELECT request, answer, checksum FROM answers")
            damaged = sum(not is_whole(*row) for row in rows)
            if damaged:
                raise self._damaged(f"{damaged} of {len(self)} answers have a wrong checksum")
            self._checked = True

    def find(self, keys: Sequence[bytes]) -> dict[bytes, str]:
        """The answers to those of ``keys`` that have one.

        Raises:
            DataError: if a row is damaged; where an answer is missing, any row.
        """
        found: dict[bytes, str] = {}
        with self._readable():
            for start in range(0, len(keys), _AT_ONCE):
                part = keys[start : start + _AT_ONCE]
                marks = ",".join("?" * len(part))
                query = f"SELECT request, answer, checksum FROM answers WHERE request IN ({marks})"
                for request, answer, known in self._database.execute(query, part):
                    if not is_whole(request, answer, known):
                        raise self._damaged("an answer has a wrong checksum")
                    found[request] = answer
            if len(found) < len(set(keys)):
                self._check_all()
        return found

    def settle(self, answers: Mapping[bytes, str]) -> dict[bytes, str]:
        """Store ``answers``, all or none; returns what the store now holds for their keys."""
        rows = [(key, answer, checksum(key, answer)) for key, answer in answers.items()]
        with self._readable(), self._writing():
            self._database.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?, ?)", rows)
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
