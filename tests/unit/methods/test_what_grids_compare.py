"""What the grids of the papers set beside each other: parts that do something, and runs that differ in one part."""

import pytest
import yaml

from tests.planning import DEMO, ROOT, merged_config
from workflow_scripts.graph.checks import read_files
from workflow_scripts.graph.runs import baselines_of, members_of, run_settings, runs_of

STUDIES = ("config/config.yaml", "config/minilm.yaml", DEMO)


@pytest.fixture(scope="module")
def paper():
    config = merged_config(ROOT, "config/config.yaml")
    return config, read_files(config, [], ROOT / "config")[0]


@pytest.mark.parametrize("overlay", STUDIES)
def test_a_selector_that_is_the_identity_is_a_control_by_name(overlay):
    """Equation 4 of S2Sent with one branch: what is called so, in every grid, and nothing else."""
    config = merged_config(ROOT, overlay)
    grids = read_files(config, [], ROOT / "config")[0]
    selectors, identities = 0, set()
    for grid in grids.values():
        for name, run in runs_of(grid).items():
            readout = run_settings(config, run)["method"].get("readout", {})
            if readout.get("kind") == "s2sent":
                selectors += 1
                one_branch = readout["blocks"] == 1 or readout["form"] == "average"
                if one_branch and readout["gate"] == "softmax":
                    identities.add(name)
                    assert ".identity-" in name, name
    assert selectors
    assert (len(identities) >= 12) == (overlay == "config/config.yaml")


def test_the_panel_of_one_block_is_five_selectors_that_learn(paper):
    """S2Sent, Figure 6: as many different trainings as points, of four baselines."""
    config, grids = paper
    found = {}
    for run in runs_of(grids["s2sent_figure6"]).values():
        readout = run_settings(config, run)["method"].get("readout", {})
        if readout.get("kind") == "s2sent":
            found.setdefault((run.method, run.encoder), []).append(
                (readout["blocks"], readout["frequencies"], readout["gate"])
            )
    expected = [
        (blocks, frequencies, "batch" if blocks == 1 else "softmax")
        for blocks in (1, 3, 6, 9, 12)
        for frequencies in (1, 2, 4, 8, 16)
    ]
    assert len(found) == 4
    assert all(sorted(points) == expected for points in found.values())


def test_the_panels_of_cosines_are_those_of_figure_8(paper):
    """Last 1, 3 and 6 blocks, without the selector and with it."""
    names = list(runs_of(paper[1]["s2sent_figure8"]))
    start = "simcse{}.bert_base.wiki1m.{}"
    assert names == [
        *(start.format("", tag) for tag in ("last1", "last3", "last6")),
        *(start.format("_s2sent", tag) for tag in ("1d-last1", "2d-last3", "2d-last6")),
    ]


def test_a_pooler_and_its_baseline_weigh_hard_negatives_alike(paper):
    """LayerAttPooler, Eq. 8: the layers' attention, and not the loss, is what differs; both weights are run."""
    config, grids = paper
    grid = grids["layerattpooler_table1"]
    runs, baselines = runs_of(grid), baselines_of(grid)
    pairs = set()
    for name, run in runs.items():
        if run.method != "supervised_layerattpooler" or ".eq8" not in name:
            continue
        ours, theirs = (run_settings(config, runs[one])["method"] for one in (name, baselines[name]))
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
    config, grids = paper
    runs = [run for grid in grids.values() for run in runs_of(grid).values() if run.method == method]
    runs += [
        run for name in config["encoders"] for run in members_of(config["encoders"], name, (0,)).values()
    ]
    settings = [run_settings(config, run) for run in runs if run.method == method]
    assert {found["development"]["every"] for found in settings} == {every}


def test_what_is_trained_with_the_sentences_of_sick_r_starts_from_what_is(paper):
    """JTCSE, Table VIII: TNCSE's supplement adds them in every stage."""
    config, grids = paper
    stages = {}
    for run in runs_of(grids["jtcse_table8"]).values():
        behind = members_of(config["encoders"], run.encoder, (1,)).values()
        sources = [config["corpora"][one.corpus]["round_trip"]["corpus"] for one in behind]
        if run.method in ("simcse", "tncse", "jtcse"):
            stages.setdefault(run.corpus, []).append((run.method, sources))
    for corpus in ("wiki1m", "wiki1m_sick_r"):
        assert stages[corpus] == [("simcse", []), ("tncse", [corpus] * 2), ("jtcse", [corpus] * 2)]


def test_tables_of_jtcse_without_these_sentences_say_so():
    for table in ("1", "7", "9", "10", "11"):
        grid = yaml.safe_load((ROOT / f"config/experiments/jtcse_table{table}.yaml").read_text())
        assert "on Wiki1M alone" in grid["source"]


def test_moduli_of_figure_8_are_those_of_a_hundred_sentences_of_wikipedia(paper):
    config, grids = paper
    (column,) = [one for one in grids["jtcse_figure8"]["columns"] if one.get("heading") == "modulus"]
    sample = config["suites"]["geometry"][column["suite"]]["samples"][column["task"]]
    assert sample == {"dataset": "wiki1m", "min_characters": 0, "max_sentences": 100}


def test_infocse_weighs_alike_on_both_backbones_in_jtcse(paper):
    """Its code's 0.7; TNCSE's is 0.75 on RoBERTa."""
    methods = paper[0]["methods"]
    assert methods["uc_bert"]["weights"] == methods["uc_roberta"]["weights"] == [0.3, 0.7]
    assert methods["uc_roberta"]["readings"]["tncse"]["method"]["weights"] == [0.25, 0.75]
    fused = {
        run.encoder: run_settings(paper[0], run)["method"]["weights"]
        for run in runs_of(paper[1]["jtcse_table1"]).values()
        if run.method.startswith("uc_")
    }
    assert fused == {
        "jtcse_bert_uc": [0.3, 0.7], "tncse_bert_uc": [0.3, 0.7],
        "jtcse_roberta_uc": [0.3, 0.7], "tncse_roberta_uc": [0.25, 0.75], "rankcse_bert_uc": [0.3, 0.7],
    }  # fmt: skip
