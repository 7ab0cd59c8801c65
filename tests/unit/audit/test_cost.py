"""Seconds, memory, requests, tokens and dollars of jobs, from the files that runs leave."""

import os
from pathlib import Path

import pyarrow as pa
import pytest

from tests.unit.audit.conftest import RUNS, STUDY
from workflow_scripts.audit.cost import costs, in_all
from workflow_scripts.audit.jobs import jobs_of, last_words
from workflow_scripts.audit.verify import unchecked
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import write_table


def leave(rule, name, seconds=None, log="done\n", memory="100.5"):
    """What a job leaves: its log, and if it ended well its measurements."""
    path = Path("logs/study", rule, f"{name}.log")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(log)
    if seconds is not None:
        measured = Path("benchmarks/study", rule, f"{name}.tsv")
        measured.parent.mkdir(parents=True, exist_ok=True)
        measured.write_text(f"s\th:m:s\tmax_rss\n{seconds}\t0:00:01\t{memory}\n")


@pytest.fixture
def measured(root):
    leave("read_dataset", "stsb", 1.5)
    leave("split_corpus", "wiki", 2)
    leave("fetch_encoder", "all", 3, memory="-")
    for run, seed in RUNS:
        leave("train_encoder", f"{run}/seed{seed}", 100 + seed)
        leave("evaluate_sts", f"suite/{run}/seed{seed}", 10)
    leave("make_table", "main", 4)
    leave("draw_figure", "main", 5)
    leave("write_report", "report", 6)
    return root


def test_every_job_has_its_own_measurements(measured):
    found = {cost.job: cost for cost in costs(measured, [Path(STUDY)])}
    assert len(found) == 2 + 1 + 2 * len(RUNS) + 3
    assert found["train_encoder/simcse/seed2"].seconds == 102
    assert found["train_encoder/plain/seed1"].seconds == 101
    assert found["write_report/report"].seconds == 6
    assert found["fetch_encoder/all"].memory_mb is None
    total = in_all(found.values())
    assert (total.jobs, total.memory_mb) == (len(found), 100.5)
    assert total.seconds == 1.5 + 2 + 3 + (101 + 102 + 101) + 30 + 15
    assert (total.calls, total.tokens, total.cost_usd) == (0, 0, 0.0)


def test_seeds_that_were_measured_together_share_the_seconds(measured):
    Path("benchmarks/study/train_encoder/simcse/seed2.tsv").unlink()
    leave("train_encoder", "simcse/seeds1_2", 150)
    Path("logs/study/train_encoder/simcse/seeds1_2.log").unlink()  # each has its own
    os.utime("benchmarks/study/train_encoder/simcse/seed1.tsv", (0, 0))  # trained alone before
    found = {cost.job: cost.seconds for cost in costs(measured, [Path(STUDY)])}
    assert found["train_encoder/simcse/seed1"] == found["train_encoder/simcse/seed2"] == 75
    assert found["train_encoder/plain/seed1"] == 101
    assert failed(measured) == set()
    alone = Path("benchmarks/study/train_encoder/simcse/seeds1_2.tsv")
    os.utime(alone, (1, 1))
    leave("train_encoder", "simcse/seed2", 7)
    again = {cost.job: cost.seconds for cost in costs(measured, [Path(STUDY)])}
    assert (again["train_encoder/simcse/seed1"], again["train_encoder/simcse/seed2"]) == (75, 7)


def test_jobs_of_one_process_share_its_log_and_count_once(measured, study):
    record = study.made_by(
        "evaluate_geometry", ["space.parquet"], wildcards={"suite": "space", "run": "simcse"}
    )
    write_table(Path(STUDY, "space.parquet"), pa.table({"n": [1]}), record)
    line = "evaluate_geometry space simcse: wrote scores space.parquet (1 rows) in 0.2 s\n"
    leave("evaluate_sts", "suite/simcse/seed1", 10, log=line)
    os.utime("benchmarks/study/evaluate_sts/suite/simcse/seed1.tsv", (2_000_000_000, 2_000_000_000))
    found = {cost.job: cost for cost in costs(measured, [Path(STUDY)])}
    assert found["evaluate_sts/suite/simcse/seed1"].seconds == 10
    assert found["evaluate_geometry/simcse/space"].seconds == 0.0
    (job,) = (
        one for one in jobs_of(unchecked(measured, [Path(STUDY)]), STUDY) if one.rule == "evaluate_geometry"
    )
    assert (job.seconds, job.end.year) == (10, 2033)


def test_the_cost_of_a_file_is_that_of_all_it_was_made_from(measured):
    behind = {cost.job for cost in costs(measured, [Path(STUDY)], Path(STUDY, "runs/plain/seed1/model"))}
    assert behind == {"fetch_encoder/all", "split_corpus/wiki", "train_encoder/plain/seed1"}
    with pytest.raises(DataError, match="not an artefact"):
        costs(measured, [Path(STUDY)], Path("resources/prompt.txt"))


def test_a_job_without_measurements_is_unknown_and_not_free(measured):
    Path("benchmarks/study/make_table/main.tsv").unlink()
    assert in_all(costs(measured, [Path(STUDY)])).unmeasured


USAGE = {"model": ["m", "n"], "calls": [3, 2], "prompt_tokens": [100, 10], "completion_tokens": [7, 1]}


@pytest.mark.parametrize(("dollars", "expected"), [([0.25, 0.5], 0.75), ([0.25, None], None)])
def test_requests_tokens_and_dollars_come_from_tables_of_usage(measured, study, dollars, expected):
    record = study.made_by("ask", ["usage.parquet"])
    write_table(Path(STUDY, "usage.parquet"), pa.table({**USAGE, "cost_usd": dollars}), record)
    (cost,) = (cost for cost in costs(measured, [Path(STUDY)]) if cost.job.startswith("ask"))
    assert (cost.calls, cost.tokens, cost.cost_usd) == (5, 118, expected)


def failed(root):
    return {f"{job.rule}/{job.name}" for job in jobs_of(unchecked(root, [Path(STUDY)]), STUDY) if job.failed}


def test_a_log_without_measurements_is_a_failed_job(measured):
    assert failed(measured) == set()
    leave("train_encoder", "other/seed1", log="first\nTrainingError: step 3: loss is nan\n\n")
    assert failed(measured) == {"train_encoder/other/seed1"}
    log = Path("logs/study/train_encoder/other/seed1.log")
    assert last_words(log) == "TrainingError: step 3: loss is nan"
    log.write_bytes(b"")
    assert "killed" in last_words(log)


def test_a_log_younger_than_its_measurements_is_a_job_that_failed_when_run_again(measured):
    leave("train_encoder", "other/seed1", 5)
    assert failed(measured) == set()
    log = Path("logs/study/train_encoder/other/seed1.log")
    os.utime(log, (log.stat().st_atime, log.stat().st_mtime + 60))
    assert failed(measured) == {"train_encoder/other/seed1"}
