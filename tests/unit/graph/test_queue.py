"""What a cluster says before anything is submitted, and what becomes of it: a line for each job that would not run."""

import logging
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.planning import ROOT
from workflow_scripts.errors import ConfigError
from workflow_scripts.graph import queue
from workflow_scripts.graph.queue import (
    Request,
    Settings,
    as_groups,
    knows_partitions,
    minutes_of,
    nodes_in,
    proposal,
    queue_findings,
    queued_here,
    settings_of,
    target_of,
)

SINFO = """\
cpu*|1-00:00:00|(null)|64|256000|up
gpu|2-00:00:00|gpu:a100:4(S:0-3)|64+|512000+|up
gpu|2-00:00:00|gpu:v100:2|32|128000|up
old|infinite|(null)|8|16000|down
"""
SQUEUE = Settings(None, "squeue", 9)


def answers(**given):
    """A cluster that says this, by command."""
    said = {
        "sinfo": (0, SINFO),
        "scontrol": (0, "MinJobAge               = 300 sec"),
        "sacct": (0, ""),
    } | given
    return lambda command, *_options: said[command]


def findings(*requests, settings=SQUEUE, targets=(), which=lambda name: name, **given):
    return list(queue_findings(requests, settings, targets, answers(**given), which))


def test_what_fits_is_no_finding():
    assert not findings(Request("split_corpus", minutes=30, memory_mb=16000, cores=2))


def test_a_machine_without_slurm_is_one_line():
    (line,) = findings(Request("train_encoder", gpus=1), which=lambda name: name != "sbatch")
    assert line.startswith("SLURM: no sbatch on the PATH. Run it on a login node")


def test_a_controller_that_is_down_is_one_line():
    (line,) = findings(Request("train_encoder", gpus=1), sinfo=(124, "no answer within 10 s"))
    assert line == "SLURM: sinfo: no answer within 10 s. Wait until slurmctld is up; its administrators know."


def test_a_command_that_never_answers_is_given_up():
    begun = time.monotonic()
    assert queue.ask("sleep", "30", seconds=0.2)[0] == 124
    assert time.monotonic() - begun < 5
    assert queue.ask("no-such-command-here")[0] == 127
    assert queue.ask("printf", r"\377") == (0, "\N{REPLACEMENT CHARACTER}")
    assert queue.ask("sh", "-c", "echo first >&2; echo last >&2; exit 3") == (3, "last")


def test_an_account_that_accounting_does_not_know_is_named():
    ours = (0, "lab_a\nlab_b\n")
    (line,) = findings(Request("split_corpus", account="none"), sacctmgr=ours)
    assert line.startswith("slurm_account: accounting knows no account none; ")
    assert line.endswith(" has lab_a, lab_b. Name one in slurm/config.yaml.")
    assert not findings(Request("split_corpus", account="Lab_A"), sacctmgr=ours)


def test_an_account_where_there_is_no_accounting_is_refused():
    (line,) = findings(Request("split_corpus", account="none"), sacctmgr=(1, "Connection refused"))
    assert line.startswith(
        "slurm_account: none cannot be checked, sacctmgr: Connection refused. Take slurm_account"
    )


def test_a_line_ends_with_one_full_stop_whatever_a_command_says(monkeypatch):
    said = queue.ask(
        "sh", "-c", "echo You are not running a supported accounting_storage plugin. >&2; exit 1"
    )
    (line,) = findings(Request("split_corpus", account="lab"), sacctmgr=said)
    assert "supported accounting_storage plugin. Take" in line


def test_polls_that_cannot_see_the_end_of_a_job_are_refused():
    (line,) = findings(
        Request("split_corpus"), settings=Settings(None, "sacct", 9), sacct=(1, "storage is disabled")
    )
    assert line.startswith(
        "slurm-status-command in slurm/config.yaml: sacct: storage is disabled. Write squeue"
    )
    (line,) = findings(Request("split_corpus"), scontrol=(0, "MinJobAge = 5 sec"))
    assert "squeue forgets an ended job after 5 s" in line


@pytest.mark.parametrize(
    ("request_", "found"),
    [
        (Request("train_encoder", gpus=1), "asks for 1 GPU on a node, which has none; see gpu"),
        (Request("evaluate_mteb", minutes=36 * 60), "asks for 36 h, and the limit is 24 h"),
        (Request("evaluate_suite", memory_mb=300_000), "asks for 300 GB, and the largest node has 256 GB"),
        (Request("evaluate_sts", cores=128), "asks for 128 cores, and the largest node has 64"),
        (Request("train_encoder", gpus=8, partition="gpu"), "asks for 8 GPUs on a node, which has 4"),
    ],
)
def test_a_request_that_no_node_meets_is_a_line(request_, found):
    (line,) = findings(request_, Request("split_corpus", minutes=30))
    assert line.startswith(f"rule {request_.rule}, partition {request_.partition or 'cpu'}: {found}. ")


def test_a_partition_that_is_not_there_is_a_line_and_not_one_that_is_down():
    (line,) = findings(Request("train_encoder", partition="main"), Request("split_corpus", partition="main"))
    assert line == "partition main: the cluster has cpu, gpu. Name one of them in slurm/partitions.yaml."


def test_one_line_of_the_partition_file_sends_gpu_jobs_to_their_partition(tmp_path):
    file = tmp_path / "partitions.yaml"
    file.write_text("partitions:\n  cpu: {}\n  gpu: {max_gpu: 4}\n")
    settings = Settings(file, "squeue", 9)
    asked = [Request("train_encoder", gpus=4, minutes=30 * 60), Request("split_corpus", minutes=30)]
    assert not findings(*asked, settings=settings)
    (line,) = findings(Request("split_corpus", minutes=30 * 60), settings=settings)
    assert line.startswith(
        "rule split_corpus, partition cpu: asks for 30 h"
    )  # GPUs are left to who needs them


def test_of_partitions_that_fit_alike_the_first_is_taken_as_the_plugin_takes_it(tmp_path):
    file = tmp_path / "partitions.yaml"
    file.write_text("partitions:\n  cpu: {}\n  preempt: {}\n")
    assert not findings(Request("split_corpus", minutes=30), settings=Settings(file, "squeue", 9))


def test_the_proposal_is_what_the_plugin_reads(tmp_path):
    from snakemake_executor_plugin_slurm.partitions import read_partition_file

    (tmp_path / "partitions.yaml").write_text(f"partitions:\n{proposal(list(nodes_in(SINFO)))}\n")
    found = {one.name: one.limits for one in read_partition_file(tmp_path / "partitions.yaml")}
    assert {name: (limits.max_runtime, limits.max_gpu) for name, limits in found.items()} == {
        "cpu": (1440, 0),
        "gpu": (2880, 4),
    }


def test_limits_are_minutes():
    assert [minutes_of(text) for text in ("30:00", "8:00:00", "1-12:00:00")] == [30, 480, 2160]
    assert minutes_of("infinite") == float("inf")


SMALL_NODE = (0, "main*|1-00:00:00|(null)|8|16000|up\n")
EVALUATION = Request("evaluate_sts", minutes=30, memory_mb=8000)


def grouped(number, *requests):
    return list(as_groups((("evaluations", one) for one in requests), {"evaluations": number}))


def test_a_group_asks_for_what_its_jobs_ask_for_together():
    large = EVALUATION._replace(rule="map_attention", memory_mb=12_000, minutes=90)
    (four,) = grouped(4, *[EVALUATION] * 5, large)
    assert four[1:5] == (0, 90, 36_000, 4)
    assert four.group == "evaluations" and four.parts == (large, *[EVALUATION] * 3)
    alone = Request("train_encoder", gpus=1)
    assert list(as_groups([("", alone)], {})) == [alone]


def test_a_group_that_no_node_holds_is_a_line_that_says_how_many_fit():
    (line,) = findings(*grouped(4, *[EVALUATION] * 9), sinfo=SMALL_NODE)
    assert line == (
        "group evaluations, partition main: 4 jobs side by side ask for 32 GB together, and the largest node has 16 GB. "
        "Set evaluations: 2 below group-components in slurm/config.yaml."
    )
    assert not findings(*grouped(2, *[EVALUATION] * 9), sinfo=SMALL_NODE)
    assert not findings(*grouped(4, *[EVALUATION] * 2), sinfo=SMALL_NODE)  # there are no more


def test_a_group_with_too_many_cores_or_gpus_is_a_line():
    (line,) = findings(*grouped(4, *[Request("draw_figure", cores=3)] * 4), sinfo=SMALL_NODE)
    assert (
        "4 jobs side by side ask for 12 cores together, and the largest node has 8. Set evaluations: 2"
        in line
    )
    (line,) = findings(*grouped(4, *[Request("evaluate_sts", gpus=1)] * 4), sinfo=SMALL_NODE)
    assert "ask for 4 GPUs together, and a node has none. Take evaluate_sts out of groups" in line


def test_a_group_of_which_not_one_job_fits_is_not_made_smaller():
    huge = EVALUATION._replace(memory_mb=40_000)
    (line,) = findings(*grouped(4, *[huge] * 4), sinfo=SMALL_NODE)
    assert (
        "One alone does not fit: name another partition in slurm/partitions.yaml, or set mem of evaluate_sts"
        in line
    )


def test_the_profile_as_it_is_delivered_is_read_as_snakemake_reads_it(monkeypatch):
    monkeypatch.chdir(ROOT)
    found = settings_of(["--profile", "slurm"])
    assert found.partition_file == Path("slurm/partitions.yaml")
    assert (found.status_command, found.seconds_between_polls) == ("squeue", 9)
    assert found.groups["evaluate_sts"] == "evaluations" and found.components["evaluations"] == 4
    assert settings_of(["--cores", "1"]) is None


SEED = {"run": "simcse.bert", "seed": "1"}
WRAPPED = (
    "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n"
    "python -m snakemake --snakefile 'Snakefile' --target-jobs {} --allowed-rules x --cores 'all' --attempt {} --force"
)


def queue_of(*lines, scripts):
    def ask(command, *options):
        if command == "scontrol" and options[0] == "write":
            return scripts.get(options[2], (1, "no such job"))
        return {"squeue": (0, "\n".join(lines)), "sinfo": (0, SINFO)}.get(command, (0, "MinJobAge = 300 sec"))

    return ask


def test_a_job_that_is_in_the_queue_already_is_not_put_there_again(tmp_path, monkeypatch):
    """Jobs of this folder alone count, and those of other targets do not; a group counts by what it runs."""
    monkeypatch.chdir(tmp_path)
    lines = [
        f"7|RUNNING|{tmp_path}|rule_train_encoder_wildcards_simcse.bert_1",
        f"8|PENDING|{tmp_path}|rule_evaluations_evaluate_sts",
        f"9|RUNNING|{tmp_path}|rule_train_encoder_wildcards_simcse.bert_2",
        f"10|RUNNING|{tmp_path.parent}|rule_train_encoder_wildcards_simcse.bert_1",
        f"11|RUNNING|{tmp_path}|(null)",
    ]
    scripts = {
        "7": (0, WRAPPED.format("'train_encoder:run=simcse.bert,seed=1'", 1)),
        "8": (
            0,
            WRAPPED.format("'evaluate_sts:suite=sts,run=a,seed=1' evaluate_sts:suite=sts,run=b,seed=1", 2),
        ),
        "9": (0, WRAPPED.format("train_encoder:run=simcse.bert,seed=2", 1)),
    }
    ask = queue_of(*lines, scripts=scripts)
    here = queued_here(ask)
    assert [(one.number, one.state, one.attempt) for one in here] == [
        ("7", "RUNNING", 1),
        ("8", "PENDING", 2),
        ("9", "RUNNING", 1),
    ]
    member = target_of("evaluate_sts", {"suite": "sts", "run": "b", "seed": "1"})
    assert member in here[1].targets

    def refused(*targets):
        return list(queue_findings([Request("a")], SQUEUE, targets, ask, str))

    (line,) = refused(target_of("train_encoder", SEED), member)
    assert line == (
        "queue: 2 jobs of an earlier run are still there: 7 running rule_train_encoder_wildcards_simcse.bert_1, "
        "8 pending rule_evaluations_evaluate_sts. Wait until squeue --me shows them no more, or cancel them: scancel 7 8."
    )
    assert not refused(target_of("train_encoder", SEED | {"seed": "3"}))
    array = queue_of(f"9_4|RUNNING|{tmp_path}|rule_train_encoder", scripts={"9_4": scripts["9"]})
    assert [one.targets for one in queued_here(array)] == [frozenset()]
    del scripts["9"]  # SLURM does not say what it runs
    (line,) = refused(target_of("train_encoder", SEED | {"seed": "3"}))
    assert line.startswith("queue: 1 job of an earlier run is still there: 9 running") and line.endswith(
        "scancel 9."
    )


def test_a_queue_that_does_not_answer_is_a_line(tmp_path, monkeypatch):
    silent = (124, "no answer within 10 s")
    (line,) = findings(Request("a"), targets=[target_of("a", {})], squeue=silent)
    assert (
        line == "SLURM: squeue: no answer within 10 s. Wait until slurmctld is up; its administrators know."
    )
    with pytest.raises(ConfigError, match="squeue: no answer"):
        queued_here(answers(squeue=silent))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="scontrol: no answer"):
        queued_here(answers(squeue=(0, f"7|RUNNING|{tmp_path}|rule_a"), scontrol=silent))


def test_the_reason_of_a_group_that_sbatch_refuses_is_printed(caplog):
    """Snakemake prints that of a single job, and nothing of a group's."""
    printed = []
    executor = SimpleNamespace(
        logger=logging.getLogger("test of groups"),
        print_job_error=lambda job_info, msg=None, **more: printed.append((msg, more)),
    )
    queue.say_why_groups_fail(executor)
    reason = "SLURM sbatch failed. The error message was 'Requested node configuration is not available'.\n    sbatch call:\n        sbatch --mem 1\n"
    group, single = (
        SimpleNamespace(is_group=lambda found=found: found, groupid="evaluations") for found in (True, False)
    )
    executor.print_job_error(SimpleNamespace(job=single), reason)
    assert not caplog.messages
    executor.print_job_error(SimpleNamespace(job=group), reason, aux_logs=["a"])
    assert caplog.messages == [
        "group evaluations failed: SLURM sbatch failed. The error message was 'Requested node configuration is not available'."
    ]
    assert printed == [(reason, {}), (reason, {"aux_logs": ["a"]})]


def test_a_partition_file_that_has_what_the_cluster_has_is_not_proposed_again(tmp_path):
    file, nodes = tmp_path / "partitions.yaml", list(nodes_in(SINFO))

    def knows(text):
        file.write_text(text)
        return knows_partitions(file, nodes)

    assert knows(f"partitions:\n{proposal(nodes)}\n")
    assert knows("partitions:\n  gpu: {max_gpu: 4, max_runtime: 1d}\n")
    assert not knows("partitions: {}\n")
    assert not knows("partitions:\n  gpu: {max_runtime: 2880}\n")
    assert not knows("partitions:\n  gpu: {max_gpu: 4, max_runtime: 3d}\n")
    assert not knows("partitions:\n  main: {}\n")
    assert not knows_partitions(None, nodes)
