"""What jobs would ask sbatch for: as the executor plugin says it, from the profile and the site's partitions."""

import pytest
from snakemake.common.tbdstring import TBDString
from snakemake_executor_plugin_slurm import ExecutorSettings

from tests.planning import ROOT
from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.queue import (
    Request,
    partitions_in,
    requests_of,
    sbatch_options,
    settings_of,
)


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
        sbatch_options(Request("rule a", resources), ExecutorSettings(status_command="squeue"), [])


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
