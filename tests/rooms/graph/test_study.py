"""What the Snakefile looks up, for the demo: every list written out."""

import json
import os
import re
from pathlib import Path

import pytest
from snakemake.iocontainers import Wildcards

from tests.planning import DEMO, ROOT, merged_config, study_in
from workflow_scripts.graph.call import call, code_of
from workflow_scripts.graph.reporting import Models, Reporting
from workflow_scripts.graph.slices import as_json, config_slice, filled, one_of
from workflow_scripts.graph.study import open_study
from workflow_scripts.graph.targets import check_configfiles, line_of_files, lines_of_machine
from workflow_scripts.graph.training import Training

SIMCSE = "simcse.minilm_mlm.wiki_extract"
MORE_DROPOUT = f"{SIMCSE}.more_dropout"
THREE_R = "simcse_3r.minilm_mlm.wiki_extract"
JTCSE = "jtcse.demo_twin.wiki_extract"
FROZEN = ["frozen_avg.minilm", "frozen_cls.minilm_mlm", "frozen_avg.minilm_mlm"]


def wildcards(**named):
    return Wildcards(fromdict=named)


def test_runs_are_trained_joined_or_frozen(study):
    assert list(study.frozen) == FROZEN and list(study.joined) == []
    others = (f"simcse_{readout}.minilm_mlm.wiki_extract" for readout in ("s2sent", "layerattpooler"))
    assert {*study.trained} == {SIMCSE, MORE_DROPOUT, THREE_R, JTCSE, *others}


def test_a_twin_reads_the_models_of_its_members_in_order_and_its_settings_are_one_string(study):
    training, twin = Training(study), wildcards(run=JTCSE, seed="2")
    assert training.encoder(twin) == [
        f"<results>/runs/{SIMCSE}/seed2/model/record.json",
        f"<results>/runs/{MORE_DROPOUT}/seed2/model/record.json",
    ]
    assert training.encoder(wildcards(run=SIMCSE, seed="2")) == "<results>/encoders/minilm_mlm/record.json"
    assert training.development(twin) == "<results>/corpora/wiki_extract/dev.parquet"
    settings = json.loads(training.settings(twin))
    assert training.settings(twin) == json.dumps(settings, sort_keys=True)
    assert list(settings) == ["development", "labels", "members", "method", "training"]
    assert settings["members"] == [SIMCSE, MORE_DROPOUT] and settings["method"]["module"] == "jtcse"
    study.config["development"]["dataset"] = "lee"
    assert training.development(twin) == "<results>/datasets/lee.parquet"


def test_a_table_knows_how_long_its_runs_were_trained_where_they_differ(study):
    def trained():
        settings = json.loads(Reporting(study).table_settings(wildcards(experiment="demo")))
        return {run.partition(".")[0]: length for run, length in settings.get("trained", {}).items()}

    others = ("simcse_s2sent", "simcse_layerattpooler", "simcse_3r", "jtcse")
    assert trained() == {"simcse": "16 steps"} | dict.fromkeys(others, "6 steps")
    for settings in study.settings.values():
        settings["training"] |= {"epochs": 1, "max_steps": None}
    assert trained() == {}
    study.settings[THREE_R]["training"]["epochs"] = 2
    assert trained() == dict.fromkeys(("simcse", *others), "1 epoch") | {"simcse_3r": "2 epochs"}


def test_an_adapted_encoder_may_have_steps_of_its_own(study):
    training, minilm = Training(study), wildcards(encoder="minilm_mlm")
    own = {"max_steps": 7, "cpu_threads": 3, "checkpoint_minutes": 9}
    shared = json.loads(training.adapting_settings(minilm))
    shared["continue_mlm"]["training"] |= {"max_steps": 7, "cpu_threads": 3}
    study.config["encoders"]["minilm_mlm"]["adapt"]["training"] = own
    assert json.loads(training.adapting_settings(minilm)) == shared
    assert [training.of_training(key)(minilm) for key in own] == [*own.values()]


def test_chunks_decide_no_result_and_are_told_to_the_job(study):
    training, run = Training(study), wildcards(run=SIMCSE, seed="1")
    whole = training.settings(run)
    assert training.of_training("chunk", as_json)(run) == "null"
    study.config["methods"]["simcse"].setdefault("training", {})["chunk"] = 32
    training = Training(open_study(study.config, ROOT))
    assert training.settings(run) == whole
    assert training.of_training("chunk", as_json)(run) == "32"


def test_a_wildcard_matches_the_names_and_no_other():
    names = ["a.b", "a.b-c", "a", "c", "cc"]
    others = ["", "axb", "a.", "a.b-", "a.b-c-", "ac", "b", "ccc", "a.b|c"]
    assert [name for name in [*names, *others] if re.fullmatch(one_of(names), name)] == names
    assert re.fullmatch(f"{one_of(names)}/x", "a.b/x"), "a name in a path"
    assert not any(re.fullmatch(one_of([]), name) for name in [*names, *others])


def test_a_part_of_the_configuration_names_a_file_or_none_and_is_one_string():
    config, x = {"a": {"x": {"of": "b", "also": None}}, "z": 0}, wildcards(name="x")
    found = [filled(config, "a.{name}", f"<results>/{{{key}}}.txt")(x) for key in ("of", "also", "no")]
    assert found == ["<results>/b.txt", [], []]
    assert config_slice(config, one="a.{name}")(x) == '{"one": {"also": null, "of": "b"}}'


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
    for settings in study.settings.values():
        settings["training"] |= {"cpu_threads": 2, "gpus": 4}
    assert list(lines_of_machine(study)) == [
        "training.cpu_threads is 2, and this machine has 1: here, fewer are faster.",
        "training.gpus is 4, and this machine has 1: here, 4 processes share what there is.",
    ]


def test_the_files_that_are_read_are_told():
    said = [
        line_of_files({"name": "mine"}, files) for files in ([], [Path.cwd() / "demo.yaml", "/x/mine.yaml"])
    ]
    assert said == [
        "Study mine, from the repository's own files: no --configfile is given",
        "Study mine, from demo.yaml, /x/mine.yaml",
    ]


def test_files_after_a_second_flag_are_refused(monkeypatch):
    monkeypatch.setattr("sys.argv", ["snakemake", "--configfile", "a", "--", "--configfile"])
    check_configfiles()
    monkeypatch.setattr("sys.argv", ["snakemake", "--configfile", "a", "--configfile=b"])
    with pytest.raises(
        SystemExit, match="--configfile: given twice, and Snakemake reads what follows the last"
    ):
        check_configfiles()


def test_code_is_written_once_and_a_file_for_each_set_of_modules(tmp_path, monkeypatch):
    """What changes it is held by ``tests/pipeline``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("workflow_scripts.graph.call.meanings", lambda *modules: dict.fromkeys(modules, "0"))
    code_of.cache_clear()
    sets = ((), ("b",), ("c",), ("b", "c"), ("c", "b"))
    *files, last = [code_of("a", *others) for others in sets]
    assert len(set(files)) == 4 and files[3] == last
    os.utime(files[0], (1, 1))
    code_of.cache_clear()
    assert Path(code_of("a")).stat().st_mtime == 1
    code_of.cache_clear()


def test_packages_behind_what_a_job_imports_by_name_are_its_own():
    of_method = call("train_encoder", "{}", lambda run: [f"methods.{run.method}"])["packages"]
    found = {name: json.loads(of_method(wildcards(method=name))).keys() for name in ("llm2vec", "simcse")}
    assert found["llm2vec"] - found["simcse"] == {"peft"}


# Finished models


def test_a_run_waits_for_its_scores_its_figures_and_the_runs_that_start_from_it(study):
    assert Models(study).dropped() == []
    models = Models(open_study(study.config | {"keep_models": "none"}, ROOT))
    dropped = f"<results>/runs/{JTCSE}/dropped_weights.parquet"
    assert len(models.dropped()) == 9 and dropped in models.dropped()
    simcse, jtcse = (wildcards(run=name) for name in (SIMCSE, JTCSE))
    scores = [f"<results>/scores/sts/lee/{SIMCSE}/seed{seed}.parquet" for seed in (1, 2)]
    twins = [f"<results>/runs/{JTCSE}/seed{seed}/model/record.json" for seed in (1, 2)]
    assert models.readers(simcse) == sorted([*scores, *twins, "<results>/figures/demo/record.json"])
    assert not {*twins} & {*models.readers(jtcse)}
    assert models.of_run(jtcse) == twins and models.seeds(simcse) == '{"seeds": [1, 2]}'


# At the papers' scale


@pytest.fixture(scope="module")
def papers():
    return study_in(ROOT, [])


def test_a_teacher_waits_for_its_vectors(papers):
    readers = Models(papers).readers(wildcards(run="jtcse.bert_twin.wiki1m_sick_r"))
    assert any(file.startswith("<results>/teachers/jtcse_bert/") for file in readers)
