"""What the Snakefile looks up, for the demo."""

import json
import os
from pathlib import Path

import pytest
from snakemake.iocontainers import Wildcards

from tests.planning import DEMO, ROOT, merged_config, study_in
from workflow_scripts.graph.call import call
from workflow_scripts.graph.figures import Figures
from workflow_scripts.graph.reporting import readers_of_models
from workflow_scripts.graph.study import open_study
from workflow_scripts.graph.targets import check_configfiles, lines_of_machine

THREE_R = "simcse_3r.minilm_mlm.wiki_extract"


def wildcards(**named):
    return Wildcards(fromdict=named)


def test_a_twin_reads_the_models_of_its_members_in_their_order_at_its_own_seed(study):
    simcse = "simcse.minilm_mlm.wiki_extract"
    assert study.runs["jtcse.demo_twin.wiki_extract"].start("2") == [
        f"<results>/runs/{member}/seed2/model/record.json" for member in (simcse, f"{simcse}.more_dropout")
    ]


def test_an_adapted_encoder_may_have_steps_of_its_own(study):
    minilm = study.encoders["minilm_mlm"]
    own = {"max_steps": 7, "cpu_threads": 3, "checkpoint_minutes": 9}
    shared = minilm.continue_mlm
    shared["training"] |= {"max_steps": 7, "cpu_threads": 3}
    study.config["encoders"]["minilm_mlm"]["adapt"]["training"] = own
    assert minilm.continue_mlm == shared
    assert minilm.training.items() >= own.items()


def test_chunks_decide_no_result(study):
    run = study.runs["simcse.minilm_mlm.wiki_extract"]
    assert run.training.get("chunk") is None
    study.config["methods"]["simcse"].setdefault("training", {})["chunk"] = 32
    chunked = open_study(study.config, ROOT).runs[run.name]
    assert chunked.decides == run.decides and chunked.training["chunk"] == 32


def test_a_table_knows_how_long_its_runs_were_trained_where_they_differ(study):
    def trained():
        lengths = study.grids["demo"].lengths or {}
        return {run.partition(".")[0]: length for run, length in lengths.items()}

    others = ("simcse_s2sent", "simcse_layerattpooler", "simcse_3r", "jtcse")
    assert trained() == {"simcse": "16 steps"} | dict.fromkeys(others, "6 steps")
    for run in study.runs.values():
        run.training.update(epochs=1, max_steps=None)
    assert trained() == {}
    study.runs[THREE_R].training["epochs"] = 2
    assert trained() == dict.fromkeys(("simcse", *others), "1 epoch") | {"simcse_3r": "2 epochs"}


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
    open_study(merged_config(ROOT, DEMO) | {"data_root": given}, ROOT)
    assert os.environ["SEMBLANCE_DATA"] == str(tmp_path / folder)  # as jobs see it


def test_threads_and_gpus_that_this_machine_lacks_are_told(study, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # what the demo's trainings use
    monkeypatch.setattr(Path, "glob", lambda *_: ["/dev/nvidia0"])
    assert list(lines_of_machine(study)) == []
    for run in study.runs.values():
        run.training.update(cpu_threads=2, gpus=4)
    assert list(lines_of_machine(study)) == [
        "training.cpu_threads is 2, and this machine has 1: here, fewer are faster.",
        "training.gpus is 4, and this machine has 1: here, 4 processes share what there is.",
    ]


def test_files_after_a_second_flag_are_refused(monkeypatch):
    monkeypatch.setattr("sys.argv", ["snakemake", "--configfile", "a", "--", "--configfile"])
    check_configfiles()
    monkeypatch.setattr("sys.argv", ["snakemake", "--configfile", "a", "--configfile=b"])
    with pytest.raises(
        SystemExit, match="--configfile: given twice, and Snakemake reads what follows the last"
    ):
        check_configfiles()


def test_packages_behind_what_a_job_imports_by_name_are_its_own():
    of_method = call("jobs.train_encoder", "{}", lambda run: [f"methods.{run.method}"])["packages"]
    found = {name: json.loads(of_method(wildcards(method=name))).keys() for name in ("llm2vec", "simcse")}
    assert found["llm2vec"] - found["simcse"] == {"peft"}


# Finished models


# At the papers' scale


@pytest.fixture(scope="module")
def papers():
    return study_in(ROOT, [])


def test_a_teacher_waits_for_its_vectors(papers):
    readers = readers_of_models(papers, Figures(papers))["jtcse.bert_twin.wiki1m_sick_r"]
    assert any(file.startswith("<results>/teachers/jtcse_bert/") for file in readers)
