"""A folder in which jobs are started that ask a server, and what is looked for in it afterwards."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.training_jobs import NOWHERE, Started, call_of
from workflow_scripts.columns import SENTENCES
from workflow_scripts.provenance.artefacts import job_record, write_table
from workflow_scripts.provenance.closure import ROOT

CALLS = {
    "timeout_seconds": 30, "attempts": 3, "first_wait_seconds": 0.001, "longest_wait_seconds": 1, "workers": 1,
    "per_second": None, "per_day": None,
}  # fmt: skip


class Workshop:
    """A folder with a ledger of its own, and environment and workplace of its jobs."""

    def __init__(self, folder: Path, key_variable: str, key: str) -> None:
        self.folder = folder
        self.workplace = NOWHERE | {"answer_store": str(folder / "answers/answers.sqlite")}
        self.environment = os.environ | {
            "PYTHONPATH": str(ROOT),
            key_variable: key,
            "GIT_DIR": os.devnull,  # somebody may commit meanwhile
        }

    def write_sentences(self, name: str, sentences: list[str]) -> None:
        """A checksummed corpus."""
        columns = [sentences, range(len(sentences)), [0] * len(sentences)]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, SENTENCES, strict=True)]
        path = self.folder / name
        write_table(
            path,
            pa.table(arrays, schema=SENTENCES),
            job_record("count_words", settings={}, inputs={}, outputs=[path]),
        )

    def start(self, rule: str, settings: dict[str, Any], **named: Any) -> Started:
        """Start a job as its rule does."""
        return Started(
            rule, call_of(rule, settings, workplace=self.workplace, **named), self.folder, self.environment
        )

    def holds(self, text: str) -> list[str]:
        """Files that hold ``text``, compressed tables read as text."""
        files = sorted(path for path in self.folder.rglob("*") if path.is_file())
        return [path.name for path in files if text.encode() in b"".join(_contents(path))]


def _contents(path: Path) -> Iterable[bytes]:
    yield path.read_bytes()
    if path.suffix == ".parquet":
        yield str(pq.read_table(path).to_pylist()).encode()


def finish(process: Started) -> tuple[int | None, str]:
    """Exit code and output of a job, once it has ended."""
    printed, _ = process.communicate()
    return process.returncode, printed


def one_line(code: int | None, printed: str) -> str:
    """The error of a job, which must be one line without a traceback."""
    assert code == 1
    assert "Traceback" not in printed
    (line,) = [line for line in printed.replace("\r", "\n").splitlines() if "Error:" in line]
    return line
