"""The last lines of a log: files and rows in and out, and seconds."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workflow_scripts.provenance.job_log import summary


@pytest.fixture
def files(tmp_path):
    """What a job read and wrote, tables of 1,000 to 6,000 rows."""
    tables = {
        name: tmp_path / f"{name}.parquet" for name in ("corpus", "one", "two", "three", "four", "table")
    }
    for number, path in enumerate(tables.values(), start=1):
        pq.write_table(pa.table({"n": list(range(1000 * number))}), path)
    several = {f"scores/{tables[name]}": tables[name] for name in ("one", "two", "three", "four")}
    return {"corpus": tables["corpus"]} | several, {"table": tables["table"]}


def test_a_log_ends_with_rows_in_and_out_and_seconds_unless_the_job_failed(files, tmp_path):
    assert summary("make_table demo", *files, seconds=12.34, began_at=0) == [
        f"make_table demo: read corpus {tmp_path}/corpus.parquet (1,000 rows); scores 4 files (14,000 rows)",
        f"make_table demo: wrote table {tmp_path}/table.parquet (6,000 rows) in 12.3 s",
    ]
    written = files[1]["table"]
    assert summary("make_table demo", *files, seconds=1, began_at=written.stat().st_mtime + 10) == []
    written.unlink()
    assert summary("make_table demo", *files, seconds=1, began_at=0) == []
