"""The demo as the Snakefile sees it."""

import json
import os
from pathlib import Path

import pytest
from snakemake.iocontainers import Wildcards

from tests.support.snakemake_plans import DEMO, ROOT, merged_config
from workflow_scripts.graph.checks import open_study
from workflow_scripts.graph.console import check_configfiles
from workflow_scripts.graph.names import Reference, missing_files
from workflow_scripts.graph.slices import settings_of
from workflow_scripts.settings.names import Refers


def test_a_twin_reads_the_models_of_its_members_in_order(study):
    """A twin reads the models of its members in their order at its own seed."""
    simcse = "simcse.minilm_mlm.wiki_extract"
    assert study.runs["jtcse.demo_twin.wiki_extract"].start("2") == [
        f"<results>/runs/{member}/seed2/model/record.json" for member in (simcse, f"{simcse}.more_dropout")
    ]


@pytest.mark.parametrize(
    ("given", "folder"), [("~/mine", "home/mine"), ("mine", "mine"), (None, "home/of_all")]
)
def test_a_data_root_may_be_relative_or_in_the_home_folder(
    no_variables, tmp_path, monkeypatch, given, folder
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SEMBLANCE_DATA", "~/of_all")
    (tmp_path / folder).mkdir(parents=True)
    assert open_study(merged_config(DEMO) | {"data_root": given}, ROOT).data_root == tmp_path / folder


def test_files_after_a_second_flag_are_refused(monkeypatch):
    monkeypatch.setattr("sys.argv", ["snakemake", "--configfile", "a", "--", "--configfile"])
    check_configfiles()
    monkeypatch.setattr("sys.argv", ["snakemake", "--configfile", "a", "--configfile=b"])
    with pytest.raises(
        SystemExit, match="--configfile: given twice, but Snakemake reads only the files after the last"
    ):
        check_configfiles()


def test_a_slice_holds_the_defaults_of_its_settings(study):
    """A default that changes is a changed setting of every job that reads it."""
    (name, written), *_ = merged_config(DEMO)["suites"]["sts"].items()
    wildcards = Wildcards(fromdict={"suite": name})
    held = json.loads(settings_of(lambda _: study.settings, suite="suites.sts.{suite}")(wildcards))["suite"]
    assert held == study.settings.suites.sts[name].model_dump(mode="json")
    assert held["text_version"] == "release"
    assert "text_version" not in written


def test_a_study_takes_its_workplace_and_sets_none(no_variables, monkeypatch):
    """A study takes its workplace from settings and variables and sets none."""
    monkeypatch.setenv("SEMBLANCE_ANSWERS", "/elsewhere/answers.sqlite")
    monkeypatch.setenv("SEMBLANCE_OFFLINE", "1")
    before = {**os.environ}
    given = {"cache": "~/finished", "cache_gigabytes": 2, "data_root": "/data"}
    study = open_study(merged_config(DEMO) | given, ROOT)
    assert study.workplace.model_dump(mode="json") == {
        "cache": str(Path("~/finished").expanduser()),
        "cache_gigabytes": 2,
        "answer_store": "/elsewhere/answers.sqlite",
        "data_root": "/data",
        "offline": True,
    }
    assert {**os.environ} == before
    for name in ("SEMBLANCE_ANSWERS", "SEMBLANCE_OFFLINE"):
        monkeypatch.delenv(name)
    workplace = open_study(merged_config(DEMO), ROOT).workplace
    assert (str(workplace.answer_store), workplace.offline) == ("answers/answers.sqlite", False)


def test_only_files_of_its_kind_are_a_folder_of_resources(tmp_path):
    """Copies of an editor and files of a desktop are neither proposed nor taken for the file that is missing."""
    folder = tmp_path / "resources/prompts"
    folder.mkdir(parents=True)
    for name in ("list.txt", "lists.txt~", ".DS_Store", "README.md"):
        (folder / name).touch()
    named = [Reference("exemplars.mine.prompt", "lists", Refers("resources.prompts"))]
    (error,) = missing_files(tmp_path, named)
    assert str(error) == "exemplars.mine.prompt: no file resources/prompts/lists.txt. Did you mean list?"
