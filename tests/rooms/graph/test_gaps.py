"""Runs whose corpus or encoder cannot be had: rows of their tables, and no jobs."""

import copy

import pytest

from tests.support.snakemake_plans import ROOT, grids_in, merged_config
from workflow_scripts.errors import MissingError, UnreachableError
from workflow_scripts.graph import source_plans
from workflow_scripts.graph.checks import open_study
from workflow_scripts.graph.claims import PlannedClaims
from workflow_scripts.graph.gaps import Gaps, gap_runs, unpinned
from workflow_scripts.graph.needs import need_errors
from workflow_scripts.graph.reporting import Figures, PlannedPage

PAPER = "config/config.yaml"
CLAIF, MULTICSR = (
    f"dataset {name}: not found; expected local:nli/{name}.csv (sha256 not pinned)"
    for name in ("claif", "multicsr")
)
LLAMA = "encoder llama2_7b_mntp: not found; expected local:models/llm2vec-llama-2-7b-mntp"


@pytest.fixture
def opened(no_variables, tmp_path, monkeypatch):
    """A function that opens a study in a folder without results, whose Hub does not answer unless a test says so."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(source_plans, "_planned", {})
    monkeypatch.setattr(source_plans, "answers", lambda: False)
    monkeypatch.setattr(source_plans, "snapshot", lambda *_: tmp_path / "no_snapshot")
    source_plans._listing.cache_clear()

    def opening(*experiments, **sections):
        config = merged_config(PAPER) | {"data_root": str(tmp_path), "experiments": [*experiments]}
        for section, blocks in sections.items():
            config[section] = copy.deepcopy(config[section]) | blocks
        return open_study(config, ROOT)

    return opening


def with_corpus(study, corpus):
    return {name: reason for name, reason in study.gaps.items() if study.runs[name].corpus == corpus}


def test_table_2_of_3r_has_gaps_and_plans_the_rest(opened):
    """Table 2 of 3R has its missing sets as gaps and plans the rest."""
    study = opened("three_r_table2")
    grid = study.grids["three_r_table2"]
    methods = ("supervised_simcse", "supervised_simcse_3r")
    assert with_corpus(study, "claif") == {f"{method}.bert_base.claif": CLAIF for method in methods}
    assert with_corpus(study, "multicsr") == {f"{method}.bert_base.multicsr": MULTICSR for method in methods}
    assert all(
        "syncse_scratch: Hub not reached" in one for one in with_corpus(study, "syncse_scratch").values()
    )
    assert {study.gaps[f"{method}.llama2_7b_mntp.wiki1m"] for method in ("llm2vec", "llm2vec_3r")} == {LLAMA}
    assert len(grid.gaps) == len(study.gaps) == 8
    assert [*grid.every_run] == [
        name for name in grid.every_run if (name in grid.runs) != (name in grid.gaps)
    ]
    planned = [*grid.suite_files("{run}"), *study.per_run("{run}")]
    assert len(grid.runs) > 8
    assert not {*planned} & study.gaps.keys()
    assert study.read_corpora == ["nli", "wiki1m"]
    assert study.read_encoders == ["bert_base", "roberta_base"]
    assert not {"claif", "multicsr", "syncse_scratch"} & {*PlannedPage(study).datasets}


def test_what_is_made_from_a_gap_is_a_gap_for_the_same_reason(opened):
    """Members of a sum, a pool of exemplars, a teacher: here, InfoCSE has no revision, and claif is missing."""
    study = opened("jtcse_table1")
    reason = next(
        one for one in study.gaps.values() if one.startswith("encoder infocse_bert: no revision is set")
    )
    waiting = {name for name, one in study.gaps.items() if one == reason}
    student = "distil.bert_base.wiki1m_sick_r.jtcse_bert_uc_whole"
    assert {"frozen_cls.infocse_bert", "uc_bert.jtcse_bert_uc", student} <= waiting
    assert "jtcse.bert_twin.wiki1m_sick_r" in study.made_runs
    assert student not in study.made_runs
    assert "uc_bert.rankcse_bert_uc" in study.gaps
    assert "frozen_cls.rankcse_bert" in study.gaps
    exemplars = {"wiki1m_300": merged_config(PAPER)["exemplars"]["wiki1m_300"] | {"encoder": "sncse_bert"}}
    study = opened("three_r_table7", exemplars=exemplars)
    assert {one.split(":")[0] for one in study.gaps.values()} == {"encoder sncse_bert"}
    assert study.read_corpora == study.asked_pools == []


def test_a_run_that_only_gaps_are_made_from_is_not_made(opened):
    study = opened("jtcse_table1", encoders={"bert_six": merged_config(PAPER)["encoders"]["bert_six"]})
    alone = {"method": "distil", "encoder": "consert_bert", "corpus": "wiki1m", "teacher": "edfse_bert"}
    block = grids_in(merged_config(PAPER))["jtcse_table1"]
    only = block.model_copy(update={"runs": [type(block.runs[0])(**alone)]})
    study = type(study)(study.settings, {"jtcse_table1": only}, study.root)
    gaps = gap_runs(study)
    assert [*gaps] == ["distil.consert_bert.wiki1m.edfse_bert"]
    assert len(study.runs) == 8
    assert type(study)(study.settings, study.blocks, study.root, gaps).made_runs == {}


def test_figures_and_claims_leave_gaps_out(opened):
    study = opened("three_r_table2", "three_r_figure3")
    assert not study.grids["three_r_figure3"].runs
    figures = Figures(study)
    assert "three_r_figure3" not in figures.by_experiment
    assert {*figures.by_experiment["three_r_table2"]["learning_curves"].runs} == {
        *study.grids["three_r_table2"].runs
    }
    assert PlannedClaims(study).reads()["tables"]


def test_a_source_that_appears_ends_a_gap(opened, tmp_path):
    assert with_corpus(opened("three_r_table2"), "claif")
    (tmp_path / "nli").mkdir()
    (tmp_path / "nli/claif.csv").write_text("sent0,sent1,hard_neg\n")
    study = opened("three_r_table2")
    assert not with_corpus(study, "claif")
    assert with_corpus(study, "multicsr")
    assert "claif" in study.read_corpora


HAS, HAS_NOT = (lambda *_: {"model.safetensors", "nli.csv"}), (lambda *_: {"pytorch_model.bin"})


def lacking(error):
    def listing(*_):
        raise error("404")

    return listing


@pytest.mark.parametrize(
    ("listing", "begins"),
    [
        (HAS, None),
        (HAS_NOT, "encoder sncse_bert: not on the Hub; expected local:models/mine, or hub:team/sncse@"),
        (lacking(MissingError), "encoder sncse_bert: not on the Hub"),
        (lacking(UnreachableError), None),  # it denies access, say: the job says so
    ],
)
def test_the_hub_is_asked_for_what_only_it_may_have(opened, monkeypatch, listing, begins):
    monkeypatch.setattr(source_plans, "answers", lambda: True)
    monkeypatch.setattr(source_plans, "listing", listing)
    hub = {"kind": "hub", "repository": "team/sncse", "revision": "0" * 40}
    sources = [{"kind": "local", "path": "models/mine"}, hub]
    block = {"fetch": {"licence": "x", "optional": True, "sources": sources}}
    study = opened("jtcse_table1", encoders={"sncse_bert": block})
    found = Gaps(study).encoder("sncse_bert")
    assert found is None if begins is None else found.startswith(begins)
    assert ("frozen_cls.sncse_bert" in study.gaps) == (begins is not None)


def test_what_is_not_optional_is_no_gap_and_stops_with_a_line(opened):
    needed = {"fetch": {"licence": "x", "sources": [{"kind": "local", "path": "models/mine"}]}}
    study = opened("jtcse_table1", encoders={"sncse_bert": needed})
    assert "frozen_cls.sncse_bert" not in study.gaps
    (line,) = map(
        str, need_errors(study.settings, [("encoders.sncse_bert", "encoder sncse_bert")], study.workplace)
    )
    assert "models/mine/model.safetensors does not exist" in line
    assert "optional: true for a gap" in line


def test_sentences_that_a_corpus_adds_must_exist(opened):
    """Sentences that a corpus adds must be available, although the set is optional."""
    study = opened("jtcse_table2")
    jobs = [(f"datasets.{name}", f"dataset {name}") for name in ("sick_r_all", "claif")]
    assert not [*need_errors(study.settings, jobs, study.workplace)]
    (line,) = map(
        str, need_errors(study.settings, [("corpora.wiki1m_sick_r", "corpus"), *jobs], study.workplace)
    )
    assert line.startswith("datasets.sick_r_all: no source found: ")


def test_the_sources_to_pin_are_those_that_gaps_wait_for(opened):
    study = opened("jtcse_table1")
    found = dict(unpinned(study))
    assert len(found) == 9
    assert {"infocse_bert", "sbert_bert", "rankcse_bert"} < found.keys()
    assert found["pcl_bert"].repository == "qiyuw/pcl-bert-base-uncased"
    assert not [*unpinned(opened("three_r_table2"))]


def test_the_demo_has_no_gap(study):
    assert study.gaps == {}
    assert study.made_runs.keys() == study.runs.keys()
