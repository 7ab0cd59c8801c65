"""Seconds, memory, requests, tokens and dollars of jobs, from the files that runs leave."""

from pathlib import Path

import pyarrow as pa
import pytest

from tests.rooms.audit.conftest import RUNS, STUDY
from tests.verbs import data, printed
from workflow_scripts.audit.cost import finished_jobs, row_of
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import write_table


def leave(rule, name, seconds, memory="100.5"):
    """What Snakemake measures of a job."""
    measured = Path("benchmarks/study", rule, f"{name}.tsv")
    measured.parent.mkdir(parents=True, exist_ok=True)
    measured.write_text(f"s\th:m:s\tmax_rss\tcpu_time\n{seconds}\t0:00:01\t{memory}\t2\n")


@pytest.fixture
def measured(root):
    leave("read_dataset", "stsb", 1.5)
    leave("split_corpus", "wiki", 2)
    leave("fetch_encoder", "all", 3, memory="-")
    for run, seed in RUNS:
        leave("train_encoder", f"{run}/seed{seed}", 100 + seed)
        leave("evaluate_sts", f"suite/{run}/seed{seed}", 10)
    leave("make_table", "main", 4)
    leave("draw_figures", "main", 5)
    leave("write_report", "report", 6)
    return root


def test_every_job_has_its_own_measurements_and_without_them_is_unknown_and_not_free(measured):
    found = {(job.record.rule, *job.record.wildcards.values()): job.measured for job in finished_jobs(None)}
    assert len(found) == 2 + 1 + 2 * len(RUNS) + 3
    assert found["train_encoder", "simcse", "2"]["seconds"] == 102
    assert found["write_report",] == {"seconds": 6, "processor_seconds": 2, "memory_mb": 100.5}
    assert found["fetch_encoder",] == {"seconds": 3, "processor_seconds": 2}
    Path("benchmarks/study/make_table/main.tsv").unlink()
    assert row_of(finished_jobs(None))["not measured"] == 1


def test_costs_are_summed_by_rule_and_run_and_in_all(measured):
    code, found = data("cost", STUDY)
    assert code == 0 and list(found["by rule"][0].values())[:4] == ["train_encoder", 3, 304, 6]
    assert found["trainings by run"] == [
        {"run": "simcse", "jobs": 2, "seconds": 203, "of processors": 4},
        {"run": "plain", "jobs": 1, "seconds": 101, "of processors": 2},
    ]
    total = found["in_all"]
    assert (total["seconds"], total["memory, MB"]) == (1.5 + 2 + 3 + 304 + 30 + 15, 100.5)
    assert printed("cost", STUDY)[1].splitlines()[-1] == "12 jobs: 0.10 hours, 0.01 of processors"


def test_the_cost_of_a_file_is_that_of_all_it_was_made_from(measured):
    behind = finished_jobs(Path(STUDY, "runs/plain/seed1/model"))
    assert {job.measured["seconds"] for job in behind} == {3, 2, 101}
    with pytest.raises(DataError, match="not an artefact"):
        finished_jobs(Path("resources/prompt.txt"))


USAGE = {"model": ["m", "n"], "calls": [3, 2], "prompt_tokens": [100, 10], "completion_tokens": [7, 1]}


@pytest.mark.parametrize(("dollars", "expected"), [([0.25, 0.5], 0.75), ([0.25, None], None)])
def test_requests_tokens_and_dollars_come_from_tables_of_usage(measured, study, dollars, expected):
    record = study.made_by("ask", ["usage.parquet"])
    write_table(Path(STUDY, "usage.parquet"), pa.table({**USAGE, "cost_usd": dollars}), record)
    cost = row_of(job for job in finished_jobs(None) if job.record.rule == "ask")
    assert (cost["requests"], cost["tokens"], cost["USD"]) == (5, 118, expected)
