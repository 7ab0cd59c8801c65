"""What the grids of the papers set beside each other: parts that do something, and runs that differ in one part."""

import re
from collections import Counter, defaultdict
from typing import Any, NamedTuple

import pytest

from tests import ledger
from tests.planning import DEMO, ROOT, merged_config
from workflow_scripts.graph.checks import read_grids
from workflow_scripts.settings.runs import baselines_of, members_of, run_settings, runs_of

STUDIES = ("config/config.yaml", "config/minilm.yaml", DEMO)


class Grids(NamedTuple):
    """The grids of a study, and what it is configured to."""

    config: dict[str, Any]
    grids: dict[str, Any]

    def runs(self, grid):
        return runs_of(self.grids[grid])

    def every_run(self):
        return [(name, run) for grid in self.grids for name, run in self.runs(grid).items()]

    def settings(self, run):
        return run_settings(self.config, run)

    def selector(self, run):
        """The readout of S2Sent; None for a run with another."""
        readout = self.settings(run)["method"].get("readout", {})
        return readout if readout.get("kind") == "s2sent" else None

    def members(self, encoder, seeds):
        return members_of(self.config["encoders"], encoder, seeds).values()


def grids_of(overlay):
    config = merged_config(ROOT, overlay)
    return Grids(config, read_grids(config, ROOT / "config")[0])


@pytest.fixture(scope="module")
def paper():
    return grids_of("config/config.yaml")


@pytest.mark.parametrize(("overlay", "expected"), [*zip(STUDIES, ("keep", "drop", "drop"), strict=True)])
def test_the_papers_scale_keeps_the_last_batch_and_what_was_measured_without_does_not(overlay, expected):
    study = grids_of(overlay)
    settings = [study.settings(run) for _, run in study.every_run()]
    trained = [found["training"] for found in settings if "training" in found]
    assert len(trained) > 4
    last = {training["last_batch"] for training in [*trained, study.config["continue_mlm"]["training"]]}
    assert last == {expected}


@pytest.mark.parametrize("overlay", STUDIES)
def test_a_selector_that_is_the_identity_is_a_control_by_name(overlay):
    """Equation 4 of S2Sent with one branch: what is called so, in every grid, and nothing else."""
    study = grids_of(overlay)
    found = {name: readout for name, run in study.every_run() if (readout := study.selector(run))}
    assert found
    identities = {
        name
        for name, readout in found.items()
        if readout["gate"] == "softmax" and (readout["blocks"] == 1 or readout["form"] == "average")
    }
    assert [name for name in identities if ".identity-" not in name] == []
    assert (len(identities) >= 12) == (overlay == "config/config.yaml")


def test_the_panel_of_one_block_is_five_selectors_that_learn(paper):
    """S2Sent, Figure 6: as many different trainings as points, of four baselines."""
    found = defaultdict(list)
    for run in paper.runs("s2sent_figure6").values():
        if readout := paper.selector(run):
            point = readout["blocks"], readout["frequencies"], readout["gate"]
            found[run.method, run.encoder].append(point)
    expected = [
        (blocks, frequencies, "batch" if blocks == 1 else "softmax")
        for blocks in (1, 3, 6, 9, 12)
        for frequencies in (1, 2, 4, 8, 16)
    ]
    assert len(found) == 4
    assert all(sorted(points) == expected for points in found.values())


@pytest.mark.parametrize("table", ["layerattpooler_table1", "layerattpooler_table3"])
def test_a_pooler_and_its_baseline_weigh_hard_negatives_alike(paper, table):
    """LayerAttPooler, Eq. 8: the layers' attention, and not the loss, is what differs; both weights are run."""
    runs, baselines = paper.runs(table), baselines_of(paper.grids[table])
    pairs = set()
    for name, run in runs.items():
        if run.method != "supervised_layerattpooler" or ".eq8" not in name:
            continue
        ours, theirs = (paper.settings(runs[one])["method"] for one in (name, baselines[name]))
        assert ours["hard_negatives"] and theirs["hard_negatives"]
        assert ours["hard_negative_weight"] == theirs["hard_negative_weight"], name
        assert theirs["module"] == "supervised_simcse" and theirs["readout"]["kind"] == "pooling"
        pairs.add((run.encoder, ours["hard_negative_weight"]))
    encoders = ("bert_base", "roberta_base", "roberta_large")
    assert pairs == {(encoder, weight) for encoder in encoders for weight in (0.0, 1.0)}


@pytest.mark.parametrize(
    ("method", "every"),
    [("simcse", 125), ("promptbert", 125), ("simcse_layerattpooler", 100), ("supervised_layerattpooler", 100),
     ("simcse_round_trips", 100), ("jtcse", 100), ("tncse", 100), ("distil", 100)],
)  # fmt: skip
def test_checkpoints_are_compared_as_often_as_in_each_script(paper, method, every):
    """LayerAttPooler's baselines, and SimCSE as the first stage of a JTCSE, are looked at as often as what is theirs."""
    runs = [
        run
        for name in paper.grids
        for run in paper.runs(name).values()
        if not name.startswith("layerattpooler") or "layerattpooler" in run.method
    ]
    for name in paper.config["encoders"].keys() - {"bert_twin_expanded"}:
        runs += paper.members(name, (0,))
    settings = [paper.settings(run) for run in runs if run.method == method]
    assert {found["development"]["every"] for found in settings} == {every}


@pytest.mark.parametrize(
    ("table", "every"),
    [("table1", 100), ("table2", 100), ("table3", 100), ("figure3", 100), ("readings", 100), ("table5", 125)],
)  # DiffCSE's in Table 5
def test_what_layerattpooler_compares_is_looked_at_equally_often(paper, table, every):
    trained = [run for run in paper.runs(f"layerattpooler_{table}").values() if run.corpus]
    assert {paper.settings(run)["development"]["every"] for run in trained} == {every}


def test_the_first_row_of_table_2_is_the_baseline_of_table_1(paper):
    """LayerAttPooler: 84.34 in both, at the 5e-5 of Table 4."""
    found = {
        cell.table: cell
        for cell in ledger.cells()
        if cell[1:4] == ("BERT-base, Equation 8", "CLS_Last", "STS-B")
    }
    first, baseline = found["layerattpooler_table2"], found["layerattpooler_table1"]
    assert first.value == baseline.value == 84.34 and first.run == baseline.run
    run = paper.runs("layerattpooler_table2")[first.run]
    assert run == paper.runs("layerattpooler_table1")[first.run]._replace(seeds=run.seeds)
    settings = paper.settings(run)
    assert settings["training"]["learning_rate"] == 5e-5
    assert settings["method"]["readout"] == {"kind": "pooling", "pooler": "cls", "layers": None}


def texts_behind(study, run):
    """What a run, and every run that it is made from, is trained on: round trips by what was translated."""
    block = study.config["corpora"].get(run.corpus, {})
    own = {block["round_trip"]["corpus"] if "round_trip" in block else run.corpus} - {None}
    behind = [made for name in (run.encoder, run.teacher) for made in study.members(name, (1,))]
    return own.union(*(texts_behind(study, made) for made in behind))


WITH, WITHOUT = {"wiki1m_sick_r"}, {"wiki1m"}


def test_whatever_jtcse_trained_itself_saw_the_sentences_of_sick_r_in_every_stage(paper):
    """Section IV-A, footnotes 7 and 12; what it quotes did not, and Table VIII has both, on both backbones."""
    grids = [grid for grid in paper.grids if grid.startswith("jtcse_")]
    found = {made: texts_behind(paper, run) for grid in grids for made, run in paper.runs(grid).items()}
    of_its_own = re.compile(r"twin|\b(jtcse|tncse)|rankcse_bert_uc_whole")
    alone = {made for made in found if "twin_wiki1m" in made}
    assert alone == {
        f"{method}.{twin}_wiki1m.wiki1m{reading}"
        for method in ("jtcse", "tncse")
        for twin, reading in (("bert_twin", ""), ("roberta_twin", ".roberta"))
    }
    assert alone < paper.runs("jtcse_table8").keys()
    for made, texts in found.items():
        of_paper = of_its_own.search(made) and made not in alone
        assert texts == (WITH if of_paper or made.endswith(".wiki1m_sick_r") else texts & WITHOUT), made


def test_printed_numbers_of_jtcse_and_tncse_are_those_of_the_printed_text(paper):
    counted = Counter()
    for cell in ledger.cells():
        named = any(name.startswith(("JTCSE", "TNCSE")) for name in (cell.group, cell.row, cell.column))
        if cell.table.startswith("jtcse_") and named:
            without = cell.table == "jtcse_table8" and cell.row == "Wiki1M"
            texts = texts_behind(paper, paper.runs(cell.grid)[cell.run])
            assert texts == (WITHOUT if without else WITH), cell
            counted[cell.table] += 1
    # Tables I, X, XI, II, III, ...
    assert list(counted.values()) == [192, 8, 8, 184, 60, 64, 80, 64, 12, 6, 7]


def test_an_ensemble_of_diffcse_is_two_that_were_trained_on_text_expanded_by_round_trips(paper):
    """JTCSE, Table VII, footnote 12: the same round trips for every method."""
    assert "ensemble.diffcse_twin" in paper.runs("jtcse_table7")
    for name, method in (("diffcse_twin", "diffcse"), ("bert_twin_expanded", "simcse")):
        made = paper.members(name, (1,))
        trips = [paper.config["corpora"][run.corpus]["round_trip"] for run in made]
        assert [run.method for run in made] == [method] * 2
        assert [(trip["via"], trip["form"]) for trip in trips] == [("fr", "expanded"), ("ru", "expanded")]


def test_moduli_of_figure_8_are_those_of_a_hundred_sentences_of_wikipedia(paper):
    (column,) = [one for one in paper.grids["jtcse_figure8"]["columns"] if one.get("heading") == "modulus"]
    sample = paper.config["suites"]["sts"][column["suite"]]["samples"][column["task"]]
    assert sample == {"dataset": "wiki1m", "min_characters": 0, "max_sentences": 100}


def test_infocse_weighs_alike_on_both_backbones_in_jtcse(paper):
    """Its code's 0.7; TNCSE's is 0.75 on RoBERTa."""
    methods = paper.config["methods"]
    assert methods["uc_bert"]["weights"] == methods["uc_roberta"]["weights"] == [0.3, 0.7]
    assert methods["uc_roberta"]["readings"]["tncse"]["method"]["weights"] == [0.25, 0.75]
    fused = {
        run.encoder: paper.settings(run)["method"]["weights"]
        for run in paper.runs("jtcse_table1").values()
        if run.method.startswith("uc_")
    }
    assert fused == {
        "jtcse_bert_uc": [0.3, 0.7], "tncse_bert_uc": [0.3, 0.7],
        "jtcse_roberta_uc": [0.3, 0.7], "tncse_roberta_uc": [0.25, 0.75], "rankcse_bert_uc": [0.3, 0.7],
    }  # fmt: skip


def test_the_templates_of_roberta_have_a_blank_before_the_sentence_at_test_alone(paper):
    """PromptBERT's run.sh and what its train.py and evaluation.py make of it."""
    readings = paper.config["methods"]["promptbert"]["readings"]
    for name in ("roberta", "roberta_zero"):
        method = readings[name]["method"]
        assert [(template["text"], template["add_period"]) for template in method["templates"]] == [
            ("This sentence : '[X] ' means[MASK].", False),
            ("The sentence : '[X] ' means[MASK].", False),
        ]
        assert method["test_template"] == {"text": "This sentence : ' [X] ' means[MASK].", "add_period": True}
    assert readings["roberta_zero"]["method"]["bias_positions"] == "zero"
