"""What a cluster says before anything is submitted, and what becomes of it: a line for each job that would not run."""

import logging
import re
import time
from types import MappingProxyType, SimpleNamespace
from unittest.mock import Mock

import pytest
from snakemake.common.tbdstring import TBDString
from snakemake_executor_plugin_slurm import ExecutorSettings

from tests.planning import ROOT
from workflow_scripts.errors import ConfigError
from workflow_scripts.graph import queue
from workflow_scripts.graph.queue import (
    Request,
    partitions_in,
    queue_findings,
    queued_here,
    requests_of,
    sbatch_options,
    settings_of,
    target_of,
)

SQUEUE = ExecutorSettings(status_command="squeue", init_seconds_before_status_checks=9)

PARTITIONS = """\
PartitionName=cpu AllowGroups=ALL Default=YES QoS=N/A MaxNodes=UNLIMITED MaxTime=1-00:00:00 State=UP TRES=cpu=64,mem=250G
PartitionName=gpu AllowGroups=ALL Default=NO QoS=N/A MaxNodes=UNLIMITED MaxTime=UNLIMITED State=UP TRES=cpu=64,gres/gpu=8
PartitionName=old AllowGroups=ALL Default=NO QoS=N/A MaxNodes=UNLIMITED MaxTime=00:10:00 State=DOWN TRES=cpu=8,mem=16G
"""
NO_SUCH_NODES = "allocation failure: Requested node configuration is not available"


ANSWERS = {
    "show partition": (0, PARTITIONS),
    "show config": (0, "MinJobAge               = 300 sec"),
    "sacctmgr": (0, "lab_a\nlab_b\n"),
}


class Cluster:
    """Answers commands by a part of them; nothing, and no error, where it knows none."""

    def __init__(self, said=MappingProxyType({})):
        self.asked = []
        self._said = {**said, **ANSWERS, **said}  # what is said here is looked for first

    def __call__(self, *command):
        self.asked.append(" ".join(command))
        return next((said for part, said in self._said.items() if part in self.asked[-1]), (0, ""))


def findings(*requests, cluster=None, plugin=SQUEUE, targets=(), which=str):
    asked = [Request(f"rule {rule}", resources) for rule, resources in requests]
    return list(queue_findings(asked, plugin, targets, cluster or Cluster(), which))


SMALL = {"mem_mb": 2000, "runtime": 30, "_cores": 1}


def test_each_distinct_request_is_shown_to_sbatch_once():
    cluster = Cluster()
    assert not findings(("a", SMALL), ("b", SMALL), ("a", SMALL), ("a", SMALL | {"gpu": 1}), cluster=cluster)
    shown = [command for command in cluster.asked if command.startswith("sbatch")]
    assert shown == [
        "sbatch --test-only -t 30 --mem 2000 --ntasks=1 --cpus-per-task=1 --wrap true",
        "sbatch --test-only -t 30 --mem 2000 --cpus-per-task=1 --gpus=1 --wrap true",
    ]


@pytest.mark.parametrize("silent", ["scontrol", "sbatch", "squeue"])
def test_a_controller_that_does_not_answer_is_one_line_and_is_asked_no_more(silent):
    cluster = Cluster({silent: (124, "no answer within 10 s")})
    (line,) = findings(("a", SMALL), ("b", SMALL | {"gpu": 1}), cluster=cluster, targets=[target_of("a", {})])
    waiting = "Wait until slurmctld is up; its administrators know."
    assert line == f"SLURM: {silent}: no answer within 10 s. {waiting}"
    assert cluster.asked[-1].startswith(silent)


def test_a_command_that_never_answers_is_given_up():
    begun = time.monotonic()
    assert queue.ask("sleep", "30", seconds=0.2)[0] == 124
    assert time.monotonic() - begun < 5
    assert queue.ask("printf", r"\377") == (0, "\N{REPLACEMENT CHARACTER}")
    assert queue.ask("sh", "-c", "echo first >&2; echo last. >&2; exit 3") == (3, "last")


PLACE = "slurm-status-command in slurm/config.yaml"


@pytest.mark.parametrize(
    ("resources", "status", "said", "line"),
    [
        ({"slurm_account": "Lab_A"}, "squeue", {}, None),
        (
            {"slurm_account": "none"},
            "squeue",
            {},
            r"slurm_account: accounting knows no account none; \w+ has lab_a, lab_b\. Name another in slurm/config",
        ),
        (
            {"slurm_account": "Lab_A"},
            "squeue",
            {"sacctmgr": (1, "Connection refused")},
            r"slurm_account: accounting knows no account Lab_A; sacctmgr: Connection refused\. Name another",
        ),
        ({}, "sacct", {"sacct ": (1, "is disabled")}, rf"{PLACE}: sacct: is disabled\. Write squeue"),
        ({}, "squeue", {"show config": (0, "MinJobAge = 27 sec")}, None),
        (
            {},
            "squeue",
            {"show config": (0, "MinJobAge = 26 sec")},
            rf"{PLACE}: squeue forgets an ended job after 26 s .*\. Write sacct",
        ),
    ],
)
def test_what_the_plugin_would_wait_for_in_vain_is_a_line(resources, status, said, line):
    """An account that it does not know, whatever sbatch says of it, and polls that cannot see the end of a job."""
    plugin = ExecutorSettings(status_command=status, init_seconds_before_status_checks=9)
    found = findings(("a", SMALL | resources), plugin=plugin, cluster=Cluster(said))
    assert len(found) == bool(line) and all(re.match(line, one) for one in found)


def test_a_refusal_names_the_rules_their_request_and_the_words_of_sbatch():
    asked = SMALL | {"gpu": 1, "gpu_model": "a100", "slurm_partition": "gpu"}
    cluster = Cluster({"--gpus=a100:1": (1, NO_SUCH_NODES)})
    (line,) = findings(("train", asked), ("b", SMALL), ("adapt", asked), cluster=cluster)
    assert line == (
        "rule adapt, rule train: sbatch refuses -p gpu -t 30 --mem 2000 --cpus-per-task=1 --gpus=a100:1: "
        "Requested node configuration is not available; the cluster has partitions cpu, gpu, old. Set what it asks for "
        "in set-resources of slurm/config.yaml (of a group: group-components), or its partition in slurm/partitions.yaml."
    )


def test_a_time_limit_above_the_partitions_is_a_line():
    """SLURM tests it only where a site sets EnforcePartLimits."""
    day = SMALL | {"runtime": 24 * 60}
    assert not findings(("a", day), ("a", {**day, "runtime": 9000, "slurm_partition": "gpu"}))
    default, named = findings(
        ("a", SMALL | {"runtime": 24 * 60 + 1}), ("b", SMALL | {"slurm_partition": "old", "runtime": 30})
    )
    assert default == (
        "rule a: asks for 24 h, and the limit of its partition is 24 h. "
        "Set its runtime in set-resources of slurm/config.yaml; a stopped job goes on in its next try."
    )
    assert named.startswith("rule b: asks for 0.5 h, and the limit of its partition is 0.167 h. ")


SEED = {"run": "simcse.bert", "seed": "1"}
WRAPPED = (
    "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n"
    "python -m snakemake --snakefile 'Snakefile' --target-jobs {} --allowed-rules x --cores 'all' --attempt {} --force"
)


COMMANDS = {
    "7": ("'train_encoder:run=simcse.bert,seed=1'", 1),
    "8": ("'evaluate_sts:suite=sts,run=a,seed=1' evaluate_sts:suite=sts,run=b,seed=1", 2),
    "9": ("train_encoder:run=simcse.bert,seed=2", 1),
}
SCRIPTS = {f"batch_script {number} ": (0, WRAPPED.format(*command)) for number, command in COMMANDS.items()}


def queue_of(*lines, scripts=SCRIPTS):
    return Cluster({"squeue": (0, "\n".join(lines)), **scripts, "batch_script": (1, "no such job")})


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
    here = queued_here(queue_of(*lines))
    assert [(one.number, one.state, one.attempt) for one in here] == [
        ("7", "RUNNING", 1), ("8", "PENDING", 2), ("9", "RUNNING", 1),
    ]  # fmt: skip
    member = target_of("evaluate_sts", {"suite": "sts", "run": "b", "seed": "1"})
    other = target_of("train_encoder", SEED | {"seed": "3"})
    (line,) = findings(targets=[target_of("train_encoder", SEED), member], cluster=queue_of(*lines))
    assert line == (
        "queue: still there from an earlier run: 7 running rule_train_encoder_wildcards_simcse.bert_1, "
        "8 pending rule_evaluations_evaluate_sts. Wait until squeue --me shows them no more, or cancel them: scancel 7 8."
    )
    assert not findings(targets=[other], cluster=queue_of(*lines))
    # What SLURM does not give away, such as what the task of an array runs, may be anything.
    for unknown in (queue_of(lines[0], scripts={}), queue_of(lines[0].replace("7|", "7_4|"))):
        (line,) = findings(targets=[other], cluster=unknown)
        assert line.startswith("queue: still there from an earlier run: 7")


def test_the_reason_of_a_group_that_sbatch_refuses_is_printed(caplog):
    """Snakemake prints that of a single job, and nothing of a group's."""
    printed = Mock()
    executor = SimpleNamespace(logger=logging.getLogger("test of groups"), print_job_error=printed)
    queue.say_why_groups_fail(executor)
    for is_group in (False, True):
        job = SimpleNamespace(is_group=lambda: is_group, groupid="evaluations")  # noqa: B023
        executor.print_job_error(SimpleNamespace(job=job), "SLURM sbatch failed.\n    sbatch call:\n  sbatch")
    assert caplog.messages == ["group evaluations failed: SLURM sbatch failed."]
    assert printed.call_count == 2


def test_the_queue_is_asked_before_the_first_job_that_goes_to_it(monkeypatch, tmp_path):
    """Without SLURM's commands a run ends here; jobs of this machine need none."""
    monkeypatch.setenv("PATH", str(tmp_path))
    rule = SimpleNamespace(name="train_encoder")
    job = SimpleNamespace(is_local=True, rule=rule, group=None, resources=SMALL, wildcards_dict={})
    workflow = SimpleNamespace(
        executor_settings=SQUEUE,
        dag=SimpleNamespace(needrun_jobs=lambda: [job]),
        group_settings=SimpleNamespace(group_components={}),
        scheduler=Mock(),
    )
    queue.check_queue(workflow)
    job.is_local = False
    with pytest.raises(SystemExit, match=r"SLURM: no sbatch, squeue.* on the PATH\. Run it on a login node"):
        queue.check_queue(workflow)


# What jobs ask for: as the executor plugin says it, from the profile and the site's partitions


def test_a_request_has_the_options_that_the_plugin_gives_sbatch():
    asked = {
        "gpu": 1, "gpu_model": "a100", "mem_mb": 16_000, "mem": "16 GB", "runtime": 480, "_cores": 2,
        "slurm_account": "lab", "slurm_partition": "big", "slurm_extra": "--nice=5", "seeds": "1 2",
    }  # fmt: skip
    plugin = ExecutorSettings(requeue=True, qos="long", status_command="squeue")
    assert sbatch_options(Request("rule train_encoder", asked), plugin, []) == (
        "-A", "lab", "-p", "big", "-t", "480", "--mem", "16000", "--requeue", "--qos=long", "--cpus-per-task=2",
        "--nice=5", "--gpus=a100:1",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("resources", "found"),
    [
        ({"slurm_extra": "--mem=3"}, "The --memory option is not allowed"),
        ({"gpu": 1, "gpu_model": "no/model"}, "Invalid GPU model format"),
    ],
)
def test_what_the_plugin_refuses_names_the_rule(resources, found):
    with pytest.raises(ConfigError, match=rf"^rule a: {found}[^\n]+Correct it in set-resources"):
        sbatch_options(Request("rule a", resources), SQUEUE, [])


@pytest.fixture
def site(tmp_path):
    """The plugin's settings of a site with this partition file."""

    def written(text):
        (tmp_path / "partitions.yaml").write_text(text)
        return ExecutorSettings(partition_config=tmp_path / "partitions.yaml", status_command="squeue")

    return written


def test_a_partition_of_the_sites_file_is_among_the_options(site):
    plugin = site("partitions:\n  cpu: {}\n  gpu: {max_gpu: 4, max_runtime: 1-00:00:00}\n")
    options = sbatch_options(Request("rule a", {"gpu": 4, "runtime": 60}), plugin, partitions_in(plugin))
    assert options[:2] == ("-p", "gpu")


@pytest.mark.parametrize(
    "text",
    [
        "partitions:\n  main {max_runtime: 1440}\n",
        "main: {max_runtime: 1440}\n",
        "partitions:\n  main: {max_time: 1440}\n",
        "partitions:\n  main: {max_gpu: 4x}\n",
        "partitions:\n  main: {max_gpu: 1\n",
    ],
)
def test_a_mistake_of_the_partition_file_is_a_line(site, text):
    with pytest.raises(
        ConfigError, match=r"^/\S+/partitions\.yaml: [^\n]* below partitions: lines such as gpu:"
    ):
        partitions_in(site(text))


def test_the_profile_as_it_is_delivered_is_read_as_snakemake_reads_it(monkeypatch):
    monkeypatch.chdir(ROOT)
    found = settings_of(["--profile", "slurm"])
    assert partitions_in(found.plugin) == []
    assert (found.plugin.status_command, found.plugin.init_seconds_before_status_checks) == ("squeue", 9)
    assert found.groups["evaluate_sts"] == "evaluations" and found.components["evaluations"] == 4
    assert settings_of(["--cores", "1"]) is None
    assert settings_of(["--profile", "elsewhere/slurm", "--directory", "."]) is None


def test_a_group_asks_for_what_its_largest_jobs_ask_for_together():
    """And what only a file yet to come decides is left to the run."""
    small = {"mem_mb": 8000, "runtime": 30, "_cores": 1, "slurm_account": "lab"}
    large = {"mem_mb": 12_000, "runtime": 90, "_cores": 2, "slurm_account": "lab"}
    members = [("evaluate_sts", "evaluations", one) for one in (*[small] * 5, large)]
    alone = ("train_encoder", None, {"gpu": 1, "runtime": TBDString()})
    together = {"mem_mb": 36_000, "runtime": 90, "_cores": 5, "gpu": 0, "slurm_account": "lab"}
    assert list(requests_of([*members, alone], {"evaluations": 4})) == [
        Request("rule train_encoder", {"gpu": 1}),
        Request("group evaluations", together),
    ]
    for some, components, memory in ((members[:2], {"evaluations": 4}, 16_000), (members, {}, 12_000)):
        (request,) = requests_of(some, components)
        assert request.resources["mem_mb"] == memory
