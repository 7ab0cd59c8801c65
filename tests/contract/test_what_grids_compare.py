"""What the grids of the papers set beside each other: parts that do something, and runs that differ in one part."""

import re
from typing import Any, NamedTuple

import pytest

from tests.planning import DEMO, ROOT, merged_config
from workflow_scripts.graph.checks import read_grids
from workflow_scripts.settings.grids import baselines_of, members_of, run_settings, runs_of

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


BLANK = {"text": "This sentence : ' [X] ' means[MASK].", "add_period": True}
CONFIGURED = {
    "methods.promptbert.readings.roberta.method.test_template": BLANK,
    "methods.promptbert.readings.roberta_zero.method.test_template": BLANK,
    "methods.uc_bert.weights": [0.3, 0.7],
    "methods.uc_roberta.weights": [0.3, 0.7],
    "methods.uc_roberta.readings.tncse.method.weights": [0.25, 0.75],
    "suites.sts.wikipedia_moduli.samples.sentences": {
        "dataset": "wiki1m",
        "min_characters": 0,
        "max_sentences": 100,
    },
}


@pytest.mark.parametrize("key", CONFIGURED)
def test_a_reading_of_a_paper_is_configured_as_its_row_of_the_page_of_the_papers_says(paper, key):
    block = paper.config
    for part in key.split("."):
        block = block[part]
    assert block == CONFIGURED[key]


def test_the_first_row_of_table_2_is_the_baseline_of_table_1(paper):
    """LayerAttPooler: 84.34 in both, at the 5e-5 of Table 4."""
    name = "supervised_simcse.bert_base.nli.eq8.learning_rate5e-05"
    first, baseline = (paper.runs(f"layerattpooler_table{number}")[name] for number in (2, 1))
    assert first._replace(seeds=baseline.seeds) == baseline


@pytest.mark.parametrize(
    ("table", "every"), [("table1", 100), ("table2", 100), ("table3", 100), ("table5", 125)]
)  # DiffCSE's in Table 5
def test_what_layerattpooler_compares_is_looked_at_equally_often(paper, table, every):
    trained = [run for run in paper.runs(f"layerattpooler_{table}").values() if run.corpus]
    assert {paper.settings(run)["development"]["every"] for run in trained} == {every}
