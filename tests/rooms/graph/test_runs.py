"""Runs of grids, their names and settings, and the columns of grids."""

import pytest

from tests.planning import grids_in, merged_config
from workflow_scripts.graph.schema import GridBlock
from workflow_scripts.graph.slices import get_path
from workflow_scripts.graph.study import all_runs, run_settings
from workflow_scripts.settings.grids import expand, paper_of, runs_of

SHARED = {"suite": "sts", "aggregation": "all", "metric": "spearman", "scale": 100, "digits": 2}


def grid(*runs: dict, **changes: object) -> GridBlock:
    toy = {
        "title": "toy",
        "source": "toy",
        "baseline": None,
        "seeds": [1, 2],
        "runs": list(runs),
        "suites": {},
    }
    return GridBlock.strictly(toy | {"columns": [SHARED | {"tasks": ["sts12"]}]} | changes)


def test_axes_that_list_values_are_multiplied_and_named():
    runs = runs_of(grid({"method": ["a", "b"], "encoder": ["x", "y"], "corpus": "c", "tag": "t"}))
    assert list(runs) == ["a.x.c.t", "a.y.c.t", "b.x.c.t", "b.y.c.t"]
    assert runs_of(grid({"method": "a", "encoder": "x"}))["a.x"].seeds == (0,)  # nothing is drawn


@pytest.mark.parametrize(
    ("experiment", "paper"),
    [
        ("three_r_table2", "three_r"),
        ("s2sent_readings", "s2sent"),
        ("layerattpooler_figure3", "layerattpooler"),
        ("extraction", "extraction"),
        ("extraction_reference", "extraction"),  # the rows of its Table 4 that are trained
        ("lab_second", "lab_second"),
    ],
)
def test_an_experiment_belongs_to_the_paper_that_its_name_begins_with(experiment, paper):
    assert paper_of(experiment) == paper


def test_grids_share_runs_and_join_their_seeds():
    block = {"method": "a", "encoder": "x", "corpus": "c"}
    runs = all_runs({"one": grid(block), "two": grid(block, seeds=[2, 3])}, {})
    assert runs["a.x.c"].seeds == (1, 2, 3)


def test_settings_are_merged_in_their_order():
    config = {
        "training": {"rate": 1, "batch": 1, "steps": 1, "decay": 1},
        "development": {"dataset": "d", "every": 125, "max_tokens": 64},
        "encoders": {"x": {"training": {"batch": 2, "steps": 2, "decay": 2}}},
        "methods": {
            "a": {
                "module": "m",
                "t": 1,
                "training": {"steps": 3, "decay": 3},
                "development": {"every": 100},
                "readings": {"paper": {"method": {"t": 9, "u": 9}}},
            }
        },
    }
    block = {
        "method": "a",
        "encoder": "x",
        "corpus": "c",
        "reading": ["paper"],
        "overrides": {"training": {"decay": 4}, "method": {"u": 10}},
    }
    (run,) = runs_of(grid(block)).values()
    assert run_settings(config, run) == {
        "method": {"module": "m", "t": 9, "u": 10},
        "training": {"rate": 1, "batch": 2, "steps": 3, "decay": 4},
        "development": {"every": 100, "max_tokens": 64},
    }


# Sweeps


SWEEP = {
    "method": "simcse_s2sent",
    "encoder": "x",
    "corpus": "c",
    "tag": "t",
    "overrides": {"method": {"readout": {"form": "stack", "blocks": 9}}},
    "sweep": {"method.readout.blocks": [1, 3], "training.learning_rate": [5.0e-5, 0.5]},
}


def test_a_sweep_is_a_run_for_every_combination_named_after_its_values():
    runs = runs_of(grid(SWEEP))
    assert list(runs) == [
        f"simcse_s2sent.x.c.t.blocks{blocks}-learning_rate{rate}"
        for blocks in (1, 3)
        for rate in ("5e-05", "0p5")
    ]
    last = runs["simcse_s2sent.x.c.t.blocks3-learning_rate0p5"]
    assert last.overrides == {
        "method": {"readout": {"form": "stack", "blocks": 3}},
        "training": {"learning_rate": 0.5},
    }
    assert SWEEP["overrides"]["method"]["readout"]["blocks"] == 9  # the block itself is left alone


def test_runs_lie_where_they_say_in_the_figures_of_the_papers():
    """A block's ``at`` repeats what its settings, or those of its pool, already are."""
    config, checked = merged_config("config/config.yaml"), []
    for name, described in grids_in(config).items():
        for block in described.runs:
            for _, run, _ in expand(block, (1,)):
                settings = run_settings(config, run)
                settings["exemplars"] = config["exemplars"].get(settings["method"].get("pool"), {})
                for setting, value in block.at.items():
                    if name != "three_r_table8":  # where SimCSE stands for a threshold of 0
                        assert get_path(settings, setting) == value, (name, block)
                        checked.append(setting)
    assert {"method.k", "exemplars.list_words", "method.cross_every"} <= set(checked)


# Columns


MEAN = {"heading": "mean", "digits": 2}


@pytest.mark.parametrize(
    ("tasks", "written"),
    [
        (["sts12", "sts13"], {"sts12": "sts12", "sts13": "sts13"}),
        ({"STS-B": "stsb_test", "A": "sts12"}, {"STS-B": "stsb_test", "A": "sts12"}),
    ],
)
def test_tasks_are_columns_in_their_order_numbered_by_their_block(tasks, written):
    block, mean = {"method": "a", "encoder": "x"}, MEAN | {"mean_of": list(written)}
    listed = grid(block, columns=[SHARED | {"tasks": tasks}, mean])
    columns = [
        SHARED | {"heading": heading, "task": task, "measured": False} for heading, task in written.items()
    ]
    numbered = [(number, column.model_dump()) for number, column in listed.numbered()]
    assert numbered == [*((0, column) for column in columns), (1, mean)]
    assert [column.model_dump() for column in listed.experiment.columns] == [*columns, mean]
