"""The partition file of a site: every mistake is a line, with the file, what was found and what to write."""

import sys

import pytest

from tests.planning import ROOT
from workflow_scripts.graph.partitions import partition_findings
from workflow_scripts.graph.queue import check_partition_file


def findings(tmp_path, text):
    file = tmp_path / "partitions.yaml"
    file.write_text(text)
    return [line.removeprefix(str(file)) for line in partition_findings(file)]


@pytest.mark.parametrize("limit", ["1440", "24h", "1d", "2d12h", "1-00:00:00", '"24:00:00"', "90.5"])
def test_forms_of_a_time_that_the_plugin_takes_are_no_finding(tmp_path, limit):
    assert not findings(tmp_path, f"partitions:\n  main: {{max_runtime: {limit}}}\n  gpu: {{max_gpu: 4}}\n")


def test_the_file_as_it_is_delivered_is_no_finding():
    assert not list(partition_findings(ROOT / "slurm/partitions.yaml"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("partitions:\n  main {max_runtime: 1440}\n", ": main {max_runtime: '1440}' is no mapping. Write name: {max_runtime: 1440}"),
        ("partitions:\n  main:\n", ": main: None is no mapping. Write name: {max_runtime: 1440}, or name: {}."),
        ("partitions: [main, gpu]\n", ": partitions: ['main', 'gpu'] is no mapping. Write partitions: {}, or below"),
        ("main: {max_runtime: 1440}\n", ": no key partitions. Write partitions: {}, or below"),
        ("", ": no key partitions. Write"),
        ("partitions:\n  main: {max_time: 1440}\n", ": main.max_time: no limit that the plugin knows. Did you mean max_runtime?"),
        ("partitions:\n  main: {max_gpu: 4x}\n", ": main.max_gpu: '4x' is no number. Write one without a unit"),
        ("partitions:\n  main: {max_runtime: a day}\n", ": main.max_runtime: 'a day' is no time. Write 1440 (minutes), 24h, 2d12h or 1-00:00:00."),
        ("partitions:\n  main: {max_runtime: 24:00:00}\n", ": main.max_runtime: 24:00:00 is read as 86400 minutes. Write 1440"),
        ("partitions:\n  main: {available_gpu_models: a100}\n", ": main.available_gpu_models: 'a100' is no list."),
        ("partitions:\n  4: {}\n", ': 4: is read as 4, which is no name. Put it into quotes: "4".'),
        ("partitions:\n  main: {}\n  main: {}\n", ":3: key 'main' occurs twice. Fix the YAML."),
    ],
)  # fmt: skip
def test_a_mistake_is_a_line(tmp_path, text, found):
    (line,) = findings(tmp_path, text)
    assert line.startswith(found), line


def test_a_file_that_is_not_there_is_a_line(tmp_path):
    (line,) = partition_findings(tmp_path / "none.yaml")
    assert line.endswith("none.yaml: no such file. slurm-partition-config of the profile names it.")


def test_a_run_is_refused_before_the_plugin_reads_the_file(tmp_path, monkeypatch):
    """Whatever Snakemake is called for: a dry run, too."""
    (tmp_path / "slurm").mkdir()
    (tmp_path / "slurm/config.yaml").write_text("executor: slurm\nslurm-partition-config: partitions.yaml\n")
    (tmp_path / "slurm/partitions.yaml").write_text("partitions:\n  main {max_runtime: 1440}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["snakemake", "--profile", "slurm", "--dry-run"])
    with pytest.raises(
        SystemExit, match=r"slurm/partitions\.yaml: main \{max_runtime: '1440\}' is no mapping"
    ):
        check_partition_file()
    monkeypatch.setattr(sys, "argv", ["snakemake", "--cores", "1"])
    check_partition_file()
    monkeypatch.setattr(sys, "argv", ["snakemake", "--profile", "elsewhere/slurm", "--directory", "."])
    check_partition_file()
