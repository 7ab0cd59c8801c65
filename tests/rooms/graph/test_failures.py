"""The terminal: its first lines, and the last, which is one sentence a failed job; a changed setting leaves no JSON there."""

import logging
import re
from importlib.metadata import version

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

from tests.support.snakemake_plans import ROOT, run
from workflow_scripts.graph.console import FailureFilter, print_study, why
from workflow_scripts.provenance import cards

SNAKEFILE = """
from workflow_scripts.graph.console import report_failures

report_failures()

rule all:
    input: ["one.txt", "two.txt"]

rule fails:
    output: "{name}.txt"
    log: "logs/{name}.log"
    shell: {command!r}
"""
RAISES = "python -c 'import sys; print(1); sys.exit(\"DataError: {wildcards.name} is empty. Fill it.\")' >{log} 2>&1"


def end_of_run(folder, command, *arguments, code=1):
    """Output of a run whose job has this command."""
    (folder / "Snakefile").write_text(SNAKEFILE.replace("{command!r}", repr(command)))
    options = ("--cores", "1", "--keep-going", *arguments)
    ended = run(folder, "-m", "snakemake", *options, PYTHONPATH=str(ROOT))
    assert ended.returncode == code
    return ended.stderr


@pytest.mark.parametrize("quiet", [(), ("--quiet", "host", "reason"), ("--quiet", "rules")])
def test_the_sentence_of_each_failed_job_comes_last_and_once(tmp_path, quiet):
    printed = end_of_run(tmp_path, RAISES, *quiet)
    last = printed.splitlines()[-4:]
    assert sorted([tuple(last[:2]), tuple(last[2:])]) == [
        ("DataError: one is empty. Fill it.", "    log: logs/one.log"),
        ("DataError: two is empty. Fill it.", "    log: logs/two.log"),
    ]
    assert printed.count("is empty") == 2
    assert "python -c" not in printed
    assert "Failed: fails, log logs/one.log\n" in printed


def test_a_quiet_run_prints_no_failure(tmp_path):
    assert end_of_run(tmp_path, RAISES, "--quiet", "all") == ""


@pytest.mark.slow
def test_a_first_try_that_fails_is_named_at_once(tmp_path):
    """A job that succeeds at its second try is named after its first, without its error."""
    (tmp_path / "two.txt").touch()
    tries = 'echo "DataError: no" >{log}; test -e tried && touch {output} || {{ touch tried; exit 1; }}'
    printed = end_of_run(tmp_path, tries, "--retries", "1", code=0)
    assert "Failed: fails, log logs/one.log" in printed
    assert "DataError" not in printed


def test_a_job_that_a_retry_has_finished_is_not_among_the_failed(caplog):
    """Keys of the events as Snakemake has them: ``jobid`` of a failed job, ``job_id`` of a finished one."""
    errors = [
        {"event": LogEvent.JOB_ERROR, "jobid": number, "rule_name": "fails", "rule_msg": "", "log": [log]}
        for number, log in ((1, "one.log"), (2, "two.log"))
    ]
    passed = FailureFilter()
    for event in (*errors, {"event": LogEvent.JOB_FINISHED, "job_id": 1}):
        passed.filter(logging.makeLogRecord(event))
    caplog.clear()
    passed.filter(
        logging.makeLogRecord({"msg": "WorkflowError:\nAt least one job did not complete successfully."})
    )
    printed = caplog.text
    assert "two.log" in printed
    assert "one.log" not in printed


@pytest.mark.parametrize(
    ("own", "cluster", "line"),
    [
        (
            "step 1\n",
            "slurmstepd: error: TIME LIMIT\nsrun: error: Terminated\n",
            "slurmstepd: error: TIME LIMIT",
        ),
        (
            "ValueError: 1\ntorch.OutOfMemoryError: 2\nclosing\n",
            "slurmstepd: error: TIME LIMIT\n",
            "torch.OutOfMemoryError: 2",
        ),
    ],
)
def test_of_several_logs_the_first_that_says_why_is_quoted(tmp_path, own, cluster, line):
    (tmp_path / "own.log").write_text(own)
    (tmp_path / "cluster.log").write_text(cluster)
    assert why([tmp_path / "own.log", tmp_path / "cluster.log"]) == line
    assert why([tmp_path / "none.log"]).startswith("The job was ended from outside")


@pytest.mark.parametrize(
    ("gpus", "without_cuda", "said"),
    [
        (2, False, ["GPUs of this machine: 2, each used by one job at a time"]),
        (0, True, [f"PyTorch {version('torch')} cannot use this machine's GPUs: make environment LOCK=requirements-gpu.lock"]),
        (0, False, []),
    ],
)  # fmt: skip
def test_a_run_begins_with_its_study_and_its_gpus(monkeypatch, caplog, gpus, without_cuda, said):
    monkeypatch.setattr(cards, "lack_cuda", lambda: without_cuda)
    with caplog.at_level(logging.INFO):
        print_study({"name": "demo"}, [], gpus)
    assert caplog.messages == [
        "Study demo, from the repository's own files (no --configfile given)",
        *said,
    ]


PARAMS = """
from workflow_scripts.graph.console import report_failures

report_failures()

rule made:
    output: "made.txt"
    params: settings=config["settings"]
    shell: "touch {output}"
"""


def test_a_changed_setting_is_a_reason_without_json(tmp_path):
    """A changed setting is a reason without the JSON of all params."""
    (tmp_path / "Snakefile").write_text(PARAMS)
    for settings, options, reason in (
        ("before", (), "Missing output files: made.txt"),
        (
            "now",
            ("-n",),
            "Params have changed since last execution (named by python -m workflow_scripts stale, with the same --configfile)",
        ),
    ):
        words = ("--cores", "1", "--config", f"settings={settings}", *options)
        ended = run(tmp_path, "-m", "snakemake", *words, PYTHONPATH=str(ROOT))
        assert f"Reason: {reason}\n" in ended.stdout + ended.stderr


def test_every_job_that_writes_a_log_names_it_when_it_starts():
    texts = [file.read_text() for file in (ROOT / "rules").glob("*.smk")]
    rules = [
        rule for text in texts for rule in re.split(r"^rule ", text, flags=re.M)[1:] if "\n    log:" in rule
    ]
    assert len(rules) > 30
    silent = [rule.split(":")[0] for rule in rules if not re.search(r'message:\n +".+; log: {log}"', rule)]
    assert silent == []
