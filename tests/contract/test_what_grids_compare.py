"""Comparisons in the papers' grids: parts have an effect, and runs differ in one part."""

import re
from typing import Any, NamedTuple

import pytest

from tests.support.snakemake_plans import DEMO, grids_in, merged_config, settings_of_run
from workflow_scripts.settings.study import Configuration

STUDIES = ("config/config.yaml", "config/headline.yaml", "config/minilm.yaml", DEMO)


class Grids(NamedTuple):
    """The grids of a study, and what it is configured to."""

    config: Configuration
    grids: dict[str, Any]

    def runs(self, grid):
        return {name: row.run for name, row in self.grids[grid].expanded.items()}

    def every_run(self):
        return [(name, run) for grid in self.grids for name, run in self.runs(grid).items()]

    def settings(self, run):
        return settings_of_run(self.config, run)

    def selector(self, run):
        """The readout of S2Sent; None for a run with another."""
        readout = self.settings(run)["method"].get("readout", {})
        return readout if readout.get("kind") == "s2sent" else None

    def members(self, encoder, seeds):
        block = self.config.encoders.get(encoder)
        return block.members(seeds).values() if block else ()


def grids_of(overlay):
    config = merged_config(overlay)
    return Grids(Configuration.strictly(config), grids_in(config))


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
        if readout["gate"] == "softmax" and (readout["blocks"] == 1 or readout["fusion"] == "average")
    }
    assert [name for name in identities if ".identity-" not in name] == []
    assert (len(identities) >= 12) == (overlay == "config/config.yaml")


@pytest.mark.parametrize("table", ["layerattpooler_table1", "layerattpooler_table3"])
def test_a_pooler_and_its_baseline_weigh_hard_negatives_alike(paper, table):
    """LayerAttPooler, Eq. 8: the layers' attention, and not the loss, is what differs; both weights are run."""
    runs, expanded = paper.runs(table), paper.grids[table].expanded
    pairs = set()
    for name, run in runs.items():
        if run.method != "supervised_layerattpooler" or ".eq8" not in name:
            continue
        ours, theirs = (paper.settings(runs[one])["method"] for one in (name, expanded[name].baseline))
        assert ours["hard_negatives"]
        assert theirs["hard_negatives"]
        assert ours["hard_negative_weight"] == theirs["hard_negative_weight"], name
        assert theirs["module"] == "supervised_simcse"
        assert theirs["readout"]["kind"] == "pooling"
        pairs.add((run.encoder, ours["hard_negative_weight"]))
    encoders = ("bert_base", "roberta_base", "roberta_large")
    assert pairs == {(encoder, weight) for encoder in encoders for weight in (0.0, 1.0)}


def texts_behind(study, run):
    """Training texts of a run and of every run that it is made from; round trips count as the translated text."""
    own = {study.config.source_corpus(run.corpus)} if run.corpus else set()
    behind = [made for name in (run.encoder, run.teacher) for made in study.members(name, (1,))]
    return own.union(*(texts_behind(study, made) for made in behind))


WITH, WITHOUT = {"wiki1m_sick_r"}, {"wiki1m"}


def test_own_trainings_of_jtcse_saw_sick_r_in_every_stage(paper):
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
