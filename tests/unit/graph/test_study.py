"""What the Snakefile looks up, for the demo: every list written out."""

import json
import os
import re
from pathlib import Path
from types import SimpleNamespace

from tests.planning import DEMO, ROOT, merged_config
from workflow_scripts.graph.call import code_of
from workflow_scripts.graph.slices import config_slice, filled, one_of
from workflow_scripts.graph.study import data_root_of, open_study
from workflow_scripts.graph.targets import lines_of
from workflow_scripts.graph.training import Training

SIMCSE = "simcse.minilm_mlm.wiki_extract"
MORE_DROPOUT = f"{SIMCSE}.more_dropout"
THREE_R = "simcse_3r.minilm_mlm.wiki_extract"
JTCSE = "jtcse.demo_twin.wiki_extract"
FROZEN = ["frozen_avg.minilm", "frozen_cls.minilm_mlm", "frozen_avg.minilm_mlm"]


class Wildcards(SimpleNamespace):
    """Wildcards by attribute, and as a mapping as Snakemake's are."""

    def keys(self):
        return vars(self).keys()

    def items(self):
        return vars(self).items()


def test_runs_are_trained_joined_or_frozen(study):
    assert list(study.frozen) == FROZEN and list(study.joined) == []
    others = (f"simcse_{readout}.minilm_mlm.wiki_extract" for readout in ("s2sent", "layerattpooler"))
    assert {*study.trained} == {SIMCSE, MORE_DROPOUT, THREE_R, JTCSE, *others}


def test_a_twin_reads_the_models_of_its_members_in_order(study):
    training = Training(study)
    assert training.encoder(Wildcards(run=JTCSE, seed="2")) == [
        f"<results>/runs/{SIMCSE}/seed2/model/record.json",
        f"<results>/runs/{MORE_DROPOUT}/seed2/model/record.json",
    ]
    assert training.encoder(Wildcards(run=SIMCSE, seed="2")) == "<results>/encoders/minilm_mlm/record.json"


def test_settings_of_a_run_are_one_string_with_sorted_keys(study):
    text = Training(study).settings(Wildcards(run=JTCSE, seed="1"))
    settings = json.loads(text)
    assert text == json.dumps(settings, sort_keys=True)
    assert list(settings) == ["development", "labels", "members", "method", "training"]
    assert settings["members"] == [SIMCSE, MORE_DROPOUT]
    assert settings["method"]["module"] == "jtcse"


def test_an_adapted_encoder_may_have_steps_of_its_own(study):
    training, wildcards = Training(study), Wildcards(encoder="minilm_mlm")
    shared = json.loads(training.adapting_settings(wildcards))
    study.config["encoders"]["minilm_mlm"]["adapt"]["training"] = {
        "max_steps": 7,
        "cpu_threads": 3,
        "checkpoint_minutes": 9,
    }
    own = json.loads(training.adapting_settings(wildcards))
    assert own["continue_mlm"]["training"] == shared["continue_mlm"]["training"] | {
        "max_steps": 7,
        "cpu_threads": 3,
    }
    assert own["adapt"] == shared["adapt"]  # said once, where it decides
    assert training.of_training("cpu_threads")(wildcards) == 3
    assert training.of_training("checkpoint_minutes", str)(wildcards) == "9"


def test_a_wildcard_matches_the_names_and_no_other():
    names = ["a.b", "a.b-c", "a", "c", "cc"]
    others = ["", "axb", "a.", "a.b-", "a.b-c-", "ac", "b", "ccc", "a.b|c"]
    assert [name for name in [*names, *others] if re.fullmatch(one_of(names), name)] == names
    assert re.fullmatch(f"{one_of(names)}/x", "a.b/x"), "a name in a path"
    assert not any(re.fullmatch(one_of([]), name) for name in [*names, *others])


def test_a_file_is_named_by_a_block_and_left_out_where_the_block_names_none():
    config = {"a": {"x": {"of": "b", "also": None}}}
    found = [
        filled(config, "a.{name}", f"<results>/{{{key}}}.txt")(Wildcards(name="x"))
        for key in ("of", "also", "no")
    ]
    assert found == ["<results>/b.txt", [], []]


def test_a_slice_holds_what_is_named_and_fills_in_wildcards():
    config = {"a": {"x": {"k": 1, "b": 2}}, "z": 0}
    assert config_slice(config, one="a.{name}")(Wildcards(name="x")) == '{"one": {"b": 2, "k": 1}}'


def test_a_data_root_may_be_relative_or_in_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SEMBLANCE_DATA", "~/of_all")
    for given, folder in (("~/mine", "home/mine"), ("mine", "mine"), (None, "home/of_all")):
        assert data_root_of({"data_root": given}) == tmp_path / folder
        (tmp_path / folder).mkdir(parents=True)
        open_study(merged_config(ROOT, DEMO) | {"data_root": given}, ROOT)
        assert os.environ["SEMBLANCE_DATA"] == str(tmp_path / folder)  # as jobs see it
        monkeypatch.setenv("SEMBLANCE_DATA", "~/of_all")


def test_threads_that_this_machine_lacks_are_told(study, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # what the demo's trainings use
    assert list(lines_of(study, [])) == ["Study demo, in results/demo"]
    study.config["training"]["cpu_threads"] = 2
    assert list(lines_of(open_study(study.config, ROOT), []))[1:] == [
        "training.cpu_threads is 2, and this machine has 1: here, fewer are faster."
    ]


def test_code_is_written_once_and_a_file_for_each_set_of_modules(tmp_path, monkeypatch):
    """What changes it is held by ``tests/dag``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("workflow_scripts.graph.call.meanings", lambda *modules: dict.fromkeys(modules, "0"))
    code_of.cache_clear()
    sets = ((), ("b",), ("c",), ("b", "c"), ("c", "b"))
    *files, last = [code_of("jobs.a", *others) for others in sets]
    assert len(set(files)) == 4 and files[3] == last
    os.utime(files[0], (1, 1))
    code_of.cache_clear()
    assert Path(code_of("jobs.a")).stat().st_mtime == 1
    code_of.cache_clear()
