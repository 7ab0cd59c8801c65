"""What a cluster says before anything is submitted, and what becomes of it: a line for each job that would not run."""

import time

import pytest

from workflow_scripts.graph import queue
from workflow_scripts.graph.queue import Request, Settings, minutes_of, nodes_in, proposal, queue_findings

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


def findings(*requests, settings=SQUEUE, which=lambda name: name, **given):
    return list(queue_findings(requests, settings, answers(**given), which))


def test_what_fits_is_no_finding():
    assert not findings(Request("split_corpus", minutes=30, memory_mb=16000, cores=2))


def test_a_machine_without_slurm_is_one_line():
    (line,) = findings(Request("train_encoder", gpus=1), which=lambda name: name != "sbatch")
    assert line.startswith("SLURM: no sbatch on the PATH. Run it on a login node")


def test_a_controller_that_is_down_is_one_line():
    (line,) = findings(Request("train_encoder", gpus=1), sinfo=(124, "no answer within 10 s"))
    assert line == "SLURM: sinfo: no answer within 10 s. Wait until slurmctld is up; its administrators know."


def test_a_command_that_never_answers_is_given_up(monkeypatch):
    monkeypatch.setattr(queue, "SECONDS", 0.2)
    begun = time.monotonic()
    assert queue.ask("sleep", "30")[0] == 124
    assert time.monotonic() - begun < 5
    assert queue.ask("no-such-command-here")[0] == 127
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
