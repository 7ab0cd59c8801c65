"""What is kept of a job is known by the records in it, and put back for no other job."""

from pathlib import Path

import pyarrow as pa
import pytest

from workflow_scripts.provenance import kept
from workflow_scripts.provenance.artefacts import job_record, write_table

TABLE = Path("table.parquet")


@pytest.fixture
def key(tmp_path, monkeypatch):
    """The key of a job whose table is kept."""
    monkeypatch.chdir(tmp_path)
    record = job_record("count_words", settings={}, inputs={}, outputs=[TABLE], meaning={}, versions={})
    write_table(TABLE, pa.table({"a": [1]}), record)
    kept.keep([TABLE], [], record.key)
    return record.key


def test_what_is_kept_is_that_of_the_job_with_the_key_in_its_records(key):
    assert kept.holds([TABLE], [], key)
    Path(".kept/table.parquet/key").write_text("f" * 64)  # a note beside it decides nothing
    assert kept.holds([TABLE], [], key)
    assert not kept.holds([TABLE], [], "f" * 64)


def test_one_changed_byte_and_nothing_is_kept(key):
    file = Path(".kept/table.parquet/table.parquet")
    content = file.read_bytes()
    for position in (0, len(content) // 2, len(content) - 9):
        file.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
        assert not kept.holds([TABLE], [], key), position


def test_what_a_job_leaves_of_another_takes_the_place_of_nothing(key):
    """One that ends without having written what the rule names, where some other job's still stands."""
    other = job_record("count_words", settings={"a": 1}, inputs={}, outputs=[TABLE], meaning={}, versions={})
    write_table(TABLE, pa.table({"a": [2]}), other)
    kept.keep([TABLE], [], "f" * 64)
    assert kept.holds([TABLE], [], key)
    kept.keep([TABLE], [], other.key)
    assert kept.holds([TABLE], [], other.key)
