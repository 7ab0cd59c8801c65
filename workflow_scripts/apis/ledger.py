"""The ledger of answers: every request to a translator or language model in plain text, its answer, status and date.

Answers cost money or hours, and a failed job loses its outputs. Therefore answers are no rule's output, but are stored
in one SQLite file that several jobs may use at once. A row is a request (engine, model, languages, text, the settings
that determine the answer), its answer and its status:

    usable    an answer that passed all checks (``apis.answer_checks``)
    rejected  an answer that failed a check; the reason says which
    refused   the server will not answer this request
    failed    the server sent no answer, or an error instead

The first three are final; the next job sends failed requests again. The server's address and the client are attributes
of a row and do not identify it.

A new ledger is written completely under another name and then linked to its own. An existing file that is empty, or has
other tables, is therefore never a new ledger and is refused. The ledger and its locks have the permissions of their
folder: in a folder that a group may write, all users of the group share them.

A process that queries an engine locks a file next to the ledger, so no two processes pay for a request. The kernel
releases the lock however the process ends. Rates and daily budgets of providers are stored in the ledger and shared by
all jobs.

Each row has a checksum of all its columns. If damage hid a row, its request would be sent and paid again without
notice. Therefore a process checks the integrity of the complete file once before it treats a row as missing.

The file has a rollback journal, which exists only during a transaction of a few milliseconds. At other times the ledger
is one file, which may be copied, moved, and read on read-only media. SQLite's write-ahead log leaves two more files,
without which answers are missing, and does not work across machines. A rollback journal does if the file system has
POSIX locks (NFS 4, Lustre with ``flock``, GPFS); it was tested with processes on one machine. On a file system without
locks, use one machine at a time.
"""

import fcntl
import hashlib
import json
import os
import sqlite3
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from workflow_scripts.errors import ApiError, DataError

Status = Literal["usable", "rejected", "refused", "failed"]

_VERSION = 2  # of the tables
_TABLES = f"""
BEGIN IMMEDIATE;
CREATE TABLE requests (key BLOB PRIMARY KEY, engine TEXT NOT NULL, model TEXT NOT NULL,
    source TEXT NOT NULL, target TEXT NOT NULL, text TEXT NOT NULL, settings TEXT NOT NULL, answer TEXT,
    status TEXT NOT NULL, reason TEXT NOT NULL, asked_at TEXT NOT NULL, cost_usd REAL, attributes TEXT NOT NULL,
    checksum BLOB NOT NULL);
CREATE TABLE providers (name TEXT PRIMARY KEY, free_at REAL NOT NULL, day TEXT NOT NULL,
    sent INTEGER NOT NULL);
PRAGMA user_version = {_VERSION};
COMMIT;
"""
_ALLOW = "chmod -R g+rwX"
_BUSY_SECONDS = 120  # longest wait for another writer's transaction, which takes milliseconds


class ApiRequest(NamedTuple):
    """A request: everything that determines its answer."""

    engine: str
    model: str
    """Name of a language model, or hash of a rule-based engine's data; empty if the engine has neither."""
    source: str
    target: str
    """Languages by the engine's codes; empty for a prompt."""
    text: str
    settings: str = "{}"
    """Further settings, as JSON with sorted keys."""

    @property
    def key(self) -> bytes:
        """Return the hash of the complete request."""
        return hashlib.sha256(json.dumps(self).encode()).digest()


class Row(NamedTuple):
    """A request with its answer and status."""

    request: ApiRequest
    answer: str | None
    status: Status
    reason: str = ""
    asked_at: str = ""
    """Time of the answer (UTC, to the second); ``save`` fills it in."""
    cost_usd: float | None = None
    attributes: str = "{}"
    """Further facts, as JSON: address of the server, model that answered, tokens."""

    @property
    def is_final(self) -> bool:
        """Return whether the answer is final; if not, the next job sends the request again."""
        return self.status != "failed"

    @property
    def metadata(self) -> dict[str, Any]:
        """Return the parsed attributes of the row."""
        return dict(json.loads(self.attributes))


_COLUMNS = ", ".join(["key", *ApiRequest._fields, *Row._fields[1:], "checksum"])
"""Columns of the table of requests, in the order of ``_packed``."""


def now() -> str:
    """Return the current time (UTC, to the second) in the ledger's format."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _packed(row: Row) -> tuple[Any, ...]:
    values = [*row.request, *row[1:]]
    return (row.request.key, *values, hashlib.sha256(json.dumps(values).encode()).digest()[:16])


def _unpacked(packed: Sequence[Any]) -> Row | None:
    """Return the row in a line of the table; None if its checksum is wrong."""
    row = Row(ApiRequest(*packed[1:7]), *packed[7:13])
    try:
        return row if _packed(row) == tuple(packed) else None
    except TypeError:  # damage may have changed even the types of values
        return None


def _create(path: Path) -> None:
    """Write an empty ledger at ``path``, unless another process does so first."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    new = Path(name)
    try:
        with closing(sqlite3.connect(new)) as database:
            database.executescript(_TABLES)
        _share(new, path.parent)
        try:
            with suppress(FileExistsError):
                path.hardlink_to(new)
        except OSError:  # the file system has no links
            if not path.exists():
                new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _share(file: Path, folder: Path) -> None:
    """Give a new file the permissions of its folder, whatever this process's umask."""
    owner = folder.stat()
    is_sticky = owner.st_mode & stat.S_ISVTX  # such as /tmp, whose files belong to their owners
    with suppress(PermissionError):  # for a user outside the folder's group
        os.chown(file, -1, owner.st_gid)
    file.chmod(owner.st_mode & (0o644 if is_sticky else 0o666))


def _open_lock(path: Path) -> IO[bytes]:
    """Return an open file for locking, which is created if it is missing."""
    with suppress(FileExistsError):
        path.touch(exist_ok=False)
        _share(path, path.parent)
    try:
        return path.open("r+b")
    except PermissionError:  # of another user: reading is enough for a lock, except over NFS
        return path.open("rb")


class Ledger(AbstractContextManager["Ledger"]):
    """An open ledger; its methods are thread-safe."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        """Open the ledger at ``path``, or create it.

        The ledger is read-only if ``read_only`` is set, or if this user may not write the file or, for its journal, the
        folder.

        Raises:
            DataError: if the file is not a ledger, is damaged, or cannot be used by this user.
        """
        self.path = path
        self._checked = False
        self._lock = threading.RLock()
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _create(path)
        locked = [target for target in (path, path.parent) if not os.access(target, os.W_OK)]
        self.read_only = read_only or bool(locked)
        self.why_read_only = "the study is offline. Run it once with offline: false."
        if locked and not read_only:
            self.why_read_only = f"this user may not write {locked[0]}. Allow it with: {_ALLOW} {path.parent}"
        mode = "ro" if self.read_only else "rw"
        with self._reading():
            self._database = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=_BUSY_SECONDS, isolation_level=None,
                check_same_thread=False,
            )  # fmt: skip
            (version,) = self._database.execute("PRAGMA user_version").fetchone()
        if version != _VERSION:
            content = "empty" if path.stat().st_size == 0 else "another database"
            advice = "Restore a copy of your answers, or delete the file to start a new ledger"
            raise DataError(f"{path}: {content}, not a ledger of answers. {advice}.")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Run one transaction that excludes other writers and is rolled back on an error."""
        with self._reading(), self._database:
            self._database.execute("BEGIN IMMEDIATE")
            yield

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # SQLite's messages quote damaged bytes
            raise self._unusable(str(error)) from error

    def _unusable(self, problem: str) -> DataError:
        advice = "Check free space, permissions and other writers, and run again"
        damaged = "if the file is damaged, restore a copy, or save the readable rows in a new file"
        command = f"sqlite3 {self.path} .recover | sqlite3 {self.path}.saved"
        return DataError(f"{self.path}: {problem}. {advice}; {damaged}: {command}")

    # Reading

    def find(self, requests: Sequence[ApiRequest]) -> dict[bytes, Row]:
        """Return the stored rows of requests, by key.

        Raises:
            DataError: if one of them is damaged, or if one is missing and any part of the file is damaged.
        """
        rows: dict[bytes, Row] = {}
        with self._reading(), self._database:
            self._database.execute("BEGIN")
            for key in [request.key for request in requests]:
                query = f"SELECT {_COLUMNS} FROM requests WHERE key = ?"
                packed = self._database.execute(query, (key,)).fetchone()
                if packed is None:
                    self._check_pages()
                    continue
                if (row := _unpacked(packed)) is None:
                    raise self._unusable("a row has a wrong checksum")
                rows[key] = row
        return rows

    def _check_pages(self) -> None:
        """Read the complete file and compare its indices with its tables.

        Raises:
            DataError: if SQLite finds damage.
        """
        if not self._checked:
            result = self._database.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if result != "ok":
                raise self._unusable(result)
            self._checked = True

    # Writing

    @contextmanager
    def asking(self, engine: str, block: str) -> Iterator[None]:
        """Hold the lock of an engine; if another process holds it, print a line with its ``block``, and wait."""
        with _open_lock(Path(f"{self.path}.{engine}.lock")) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print(f"{block}: waiting for another job that queries this engine", file=sys.stderr)  # noqa: T201
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def save(self, rows: Iterable[Row]) -> list[Row]:
        """Write rows, all or none.

        Returns:
            The rows; those without a time have the current one.
        """
        dated = [row if row.asked_at else row._replace(asked_at=now()) for row in rows]
        values = ", ".join("?" * (_COLUMNS.count(",") + 1))
        with self._writing():
            self._database.executemany(
                f"INSERT OR REPLACE INTO requests ({_COLUMNS}) VALUES ({values})", map(_packed, dated)
            )
        return dated

    def rate_limit(self, provider: str, per_second: float | None, per_day: int | None, waiting: int) -> float:
        """Count one request to a provider, and return the seconds to wait before it is sent.

        Args:
            provider: Block of the configuration.
            per_second: Maximum rate of its requests, or None.
            per_day: Maximum number of its requests in a day (UTC), or None.
            waiting: Maximum number of requests that wait at the same time. Longer waits can only come from a clock that
                was ahead when an earlier request was counted, and are truncated.

        Raises:
            ApiError: if the provider's requests of this day (UTC) are used up.
        """
        if per_second is None and per_day is None:
            return 0.0
        moment, today = time.time(), now()[:10]
        with self._writing():
            query = "SELECT free_at, day, sent FROM providers WHERE name = ?"
            free_at, day, sent = self._database.execute(query, (provider,)).fetchone() or (0.0, today, 0)
            sent = sent if day == today else 0
            if per_day is not None and sent >= per_day:
                problem = f"the limit per_day of {per_day} requests is reached (day {today} UTC)"
                advice = "Run again tomorrow, or increase per_day; finished answers are stored."
                raise ApiError(f"{provider}: {problem}. {advice}")
            longest = waiting / per_second if per_second else 0
            begins = max(moment, min(free_at, moment + longest))
            values = (provider, begins + (1 / per_second if per_second else 0), today, sent + 1)
            self._database.execute("INSERT OR REPLACE INTO providers VALUES (?, ?, ?, ?)", values)
        return begins - moment

    def __exit__(self, *error: object) -> None:
        """Close the file."""
        self._database.close()
