"""The last lines of a log: files and rows in and out, and seconds."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workflow_scripts.provenance.artefacts import job_record
from workflow_scripts.provenance.job import Job
from workflow_scripts.provenance.job_log import summary


@pytest.fixture
def job(tmp_path):
    tables = {
        name: tmp_path / f"{name}.parquet" for name in ("corpus", "one", "two", "three", "four", "table")
    }
    for number, path in enumerate(tables.values(), start=1):
        pq.write_table(pa.table({"n": list(range(1000 * number))}), path)
    several = {f"scores/{tables[name]}": tables[name] for name in ("one", "two", "three", "four")}
    inputs = {"corpus": tables["corpus"]} | several
    start = job_record("make_table", settings={}, wildcards={"experiment": "demo"}, inputs={}, outputs=[])
    return Job(start, inputs, {"table": tables["table"]}, {})


def test_a_log_ends_with_rows_in_and_out_and_seconds(job, tmp_path):
    assert summary(job, 12.34, 0.0) == [
        f"make_table demo: read corpus {tmp_path}/corpus.parquet (1,000 rows); scores 4 files (14,000 rows)",
        f"make_table demo: wrote table {tmp_path}/table.parquet (6,000 rows) in 12.3 s",
    ]


def test_a_job_that_failed_leaves_the_last_line_to_its_error(job):
    job.outputs["table"].unlink()
    assert summary(job, 1.0, 0.0) == []


def test_an_older_output_is_not_what_this_job_wrote(job):
    written = job.outputs["table"].stat().st_mtime
    assert summary(job, 1.0, written + 10) == []
