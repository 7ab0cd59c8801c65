"""Runs of grids, their names and settings, and the columns of grids."""

import pytest

from tests.support.snakemake_plans import DEMO, ROOT, grids_in, merged_config, settings_of_run
from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.runs import all_runs
from workflow_scripts.graph.slices import get_path
from workflow_scripts.graph.study import Study
from workflow_scripts.settings.grids import GridBlock, expand, paper_of
from workflow_scripts.settings.study import Configuration

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
    runs = grid({"method": ["a", "b"], "encoder": ["x", "y"], "corpus": "c", "tag": "t"}).expanded
    assert list(runs) == ["a.x.c.t", "a.y.c.t", "b.x.c.t", "b.y.c.t"]
    assert grid({"method": "a", "encoder": "x"}).expanded["a.x"].run.seeds == (0,)  # nothing is drawn


@pytest.mark.parametrize(
    ("experiment", "paper"),
    [
        ("three_r_table2", "three_r"),
        ("s2sent_readings", "s2sent"),
        ("layerattpooler_figure3", "layerattpooler"),
        ("extraction", "extraction"),
        ("extraction_reference", "extraction"),  # the rows of its Table 4 that are trained
        ("lab_layers", "lab_layers"),
    ],
)
def test_an_experiment_belongs_to_the_paper_of_its_name(experiment, paper):
    """An experiment belongs to the paper that its name begins with."""
    assert paper_of(experiment) == paper


def test_grids_share_runs_and_join_their_seeds():
    block = {"method": "a", "encoder": "x", "corpus": "c"}
    runs = all_runs({"one": grid(block), "two": grid(block, seeds=[2, 3])}, {})
    assert runs["a.x.c"].seeds == (1, 2, 3)


def test_two_runs_of_one_name_are_told_with_both_files():
    block = {"method": "a", "encoder": "x", "corpus": "c"}
    other = grid(block | {"overrides": {"training": {"batch_size": 2}}})
    message = "^config/experiments/two.yaml: run a.x.c differs from the run of this name in config/experiments/one.yaml"
    with pytest.raises(ConfigError, match=message):
        all_runs({"one": grid(block), "two": other}, {})


TRAINED = {"method": "simcse", "encoder": "minilm_mlm", "corpus": "wiki_extract"}
FROZEN = {"method": "frozen_avg", "encoder": "minilm"}


def test_a_grid_reads_only_its_own_seeds_of_a_shared_run():
    grids = {"one": grid(TRAINED), "two": grid(TRAINED, seeds=[3])}
    study = Study(Configuration.strictly(merged_config(DEMO)), grids, ROOT)
    name = "simcse.minilm_mlm.wiki_extract"
    assert study.grids["two"].runs[name].files("{seed}") == ["3"]
    assert study.runs[name].files("{seed}") == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("dataset", "selects", "tasks"), [("stsb_dev", "stsb_dev", ["stsb_dev"]), (None, "wiki_extract", None)]
)
def test_a_table_is_told_what_selected_its_checkpoints(dataset, selects, tasks):
    config = merged_config(DEMO)
    config["development"]["dataset"] = dataset
    suites = {"sts": "stsb_test", "stsb_dev_only": "stsb_dev"}
    columns = [SHARED | {"suite": suite, "tasks": [task]} for suite, task in suites.items()]
    block = grid(TRAINED, FROZEN, suites={"sts": [*suites]}, columns=columns)
    table = Study(Configuration.strictly(config), {"demo": block}, ROOT).grids["demo"]
    assert table.chosen_by == {"simcse.minilm_mlm.wiki_extract": selects}
    assert table.development == tasks


def test_only_runs_to_choose_from_have_their_histories_read():
    several = TRAINED | {"show_best": True, "sweep": {"training.learning_rate": [0.1, 0.2]}}
    block = grid(TRAINED | {"tag": "as_it_is"}, several, FROZEN, seeds=[3])
    table = Study(Configuration.strictly(merged_config(DEMO)), {"demo": block}, ROOT).grids["demo"]
    assert sorted(table.histories) == [
        f"<results>/runs/simcse.minilm_mlm.wiki_extract.learning_rate{rate}/seed3/history.parquet"
        for rate in ("0p1", "0p2")
    ]


def test_a_sum_reads_trained_members_by_seed_and_frozen_once():
    config = merged_config(DEMO)
    config["encoders"]["two"] = {"label": None, "runs": [TRAINED, FROZEN]}
    grids = {"demo": grid({"method": "ensemble", "encoder": "two", "per_seed": True})}
    assert Study(Configuration.strictly(config), grids, ROOT).runs["ensemble.two"].start("2") == [
        "<results>/runs/simcse.minilm_mlm.wiki_extract/seed2/model/record.json",
        "<results>/runs/frozen_avg.minilm/seed0/model/record.json",
    ]


def test_a_run_may_have_seeds_of_its_own():
    runs = [
        {"method": "a", "encoder": "x", "corpus": "c"},
        {"method": "b", "encoder": "x", "corpus": "c", "seeds": [5, 4]},
    ]
    experiment = grid(*runs, seeds=[1, 2])
    assert all_runs({"one": experiment}, {})["a.x.c"].seeds == (1, 2)
    assert all_runs({"one": experiment}, {})["b.x.c"].seeds == (4, 5)
    assert experiment.experiment.runs["b.x.c"].seeds == [4, 5]


def test_a_block_may_have_a_baseline_of_its_own():
    blocks = [
        {"method": "a", "encoder": ["x", "y"], "corpus": "c"},
        {"method": "b", "encoder": "y", "corpus": "c", "baseline": "a.{encoder}.{corpus}"},
    ]
    rows = grid(*blocks, baseline="a.x.c").experiment.rows
    assert {row.run: row.baseline for row in rows} == {"a.x.c": None, "a.y.c": "a.x.c", "b.y.c": "a.y.c"}


def test_a_sum_of_runs_depends_on_the_code_of_their_readouts():
    """The demo has no such run, so no test of its reruns can see this."""
    config = merged_config(DEMO)
    member = {"encoder": "minilm_mlm", "corpus": "wiki_extract"}
    members = [member | {"method": "simcse_s2sent"}, member | {"method": "simcse_layerattpooler"}]
    config["encoders"]["two"] = {"label": None, "runs": members}
    grids = {"demo": grid({"method": "ensemble", "encoder": "two"})}
    joined = Study(Configuration.strictly(config), grids, ROOT).runs["ensemble.two"]
    readouts = {"models.readouts.s2sent", "models.readouts.layer_attention"}
    assert readouts <= {*joined.modules}
    assert readouts <= {*joined.loading}


def test_a_sum_with_another_readout_is_still_loaded_as_a_sum():
    config = merged_config(DEMO)
    member = {"method": "jtcse", "encoder": "demo_twin", "corpus": "wiki_extract"}
    config["encoders"]["one"] = {"label": None, "runs": [member]}
    study = Study(
        Configuration.strictly(config), {"demo": grid({"method": "pooled_avg", "encoder": "one"})}, ROOT
    )
    assert "models.ensemble" in study.runs["pooled_avg.one"].loading


def test_the_cost_of_a_sum_is_compared_with_its_first_encoder():
    config = merged_config(DEMO)
    config["encoders"]["two"] = {
        "label": None,
        "runs": [{"method": "frozen_avg", "encoder": name} for name in ("minilm_mlm", "minilm")],
    }
    grids = {"demo": grid({"method": "ensemble", "encoder": "two"})}
    assert (
        Study(Configuration.strictly(config), grids, ROOT).runs["ensemble.two"].first_encoder == "minilm_mlm"
    )


def test_settings_are_merged_in_their_order():
    """Shared, the encoder's, the method's, the reading's, the run's; what a layer leaves unset, it changes nothing of."""
    config = merged_config(DEMO)
    config["training"] |= {"max_steps": 1, "batch_size": 2, "max_tokens": 10, "learning_rate": 0.1}
    config["encoders"]["minilm"]["training"] = {"batch_size": 4, "max_tokens": 20, "learning_rate": 0.2}
    config["methods"]["simcse"] |= {
        "training": {"max_tokens": 30, "learning_rate": 0.3},
        "development": {"every": 100},
        "readings": {"paper": {"method": {"temperature": 0.9, "dropout": 0.5}}},
    }
    block = {
        "method": "simcse",
        "encoder": "minilm",
        "corpus": "c",
        "reading": ["paper"],
        "overrides": {"training": {"learning_rate": 0.4}, "method": {"dropout": None}},
        "tag": "t",
    }
    (row,) = grid(block).expanded.values()
    settings = settings_of_run(Configuration.strictly(config), row.run)
    training = {
        key: settings["training"][key] for key in ("max_steps", "batch_size", "max_tokens", "learning_rate")
    }
    assert training == {"max_steps": 1, "batch_size": 4, "max_tokens": 30, "learning_rate": 0.4}
    assert settings["method"]["temperature"] == 0.9
    assert settings["method"]["dropout"] is None  # an explicit null changes a value
    assert settings["development"]["every"] == 100
    assert settings["development"]["max_tokens"] == config["development"]["max_tokens"]


def test_a_block_names_its_runs_for_readers():
    block = {
        "method": "simcse",
        "encoder": ["x", "y"],
        "corpus": "c",
        "name": "SimCSE, {encoder}, n = {blocks}",
    }
    rows = grid(block | {"sweep": {"method.readout.blocks": [1, 3]}}).experiment.rows
    assert [row.name for row in rows] == [
        "SimCSE, x, n = 1", "SimCSE, x, n = 3", "SimCSE, y, n = 1", "SimCSE, y, n = 3",
    ]  # fmt: skip
    assert rows[0].run == "simcse.x.c.blocks1"
    (unnamed,) = grid({"method": "a", "encoder": "x"}).experiment.rows
    assert unnamed.name == "a.x"


def test_two_runs_with_one_name_for_readers_are_refused():
    block = {"method": "simcse", "encoder": ["x", "y"], "corpus": "c", "name": "SimCSE"}
    with pytest.raises(
        ConfigError, match=r"simcse\.x\.c and simcse\.y\.c are both called SimCSE\. Add \{encoder\}"
    ):
        _ = grid(block).expanded


# Sweeps


SWEEP = {
    "method": "simcse_s2sent",
    "encoder": "x",
    "corpus": "c",
    "tag": "t",
    "overrides": {"method": {"readout": {"fusion": "stack", "blocks": 9}}},
    "sweep": {"method.readout.blocks": [1, 3], "training.learning_rate": [5.0e-5, 0.5]},
}


def test_a_sweep_is_a_run_for_every_combination():
    """A sweep is a run for every combination named after its values."""
    runs = grid(SWEEP).expanded
    assert list(runs) == [
        f"simcse_s2sent.x.c.t.blocks{blocks}-learning_rate{rate}"
        for blocks in (1, 3)
        for rate in ("5e-05", "0p5")
    ]
    last = runs["simcse_s2sent.x.c.t.blocks3-learning_rate0p5"]
    assert last.run.overrides.given() == {
        "method": {"readout": {"fusion": "stack", "blocks": 3}},
        "training": {"learning_rate": 0.5},
    }
    assert SWEEP["overrides"]["method"]["readout"]["blocks"] == 9  # the block itself is left alone


def test_runs_lie_where_they_say_in_the_figures_of_the_papers():
    """A block's ``values`` repeats what its settings, or those of its pool, already are."""
    config, checked = merged_config("config/config.yaml"), []
    study = Configuration.strictly(config)
    for name, described in grids_in(config).items():
        for block in described.runs:
            for _, run, _ in expand(block, (1,)):
                settings = settings_of_run(study, run)
                settings["exemplars"] = config["exemplars"].get(settings["method"].get("pool"), {})
                for setting, value in block.values.items():
                    if name != "three_r_table8":  # where SimCSE stands for a threshold of 0
                        assert get_path(settings, setting) == value, (name, block)
                        checked.append(setting)
    assert {"method.k", "exemplars.word_list_size", "method.cross_every"} <= set(checked)


# Columns


MEAN = {"heading": "mean", "digits": 2}


@pytest.mark.parametrize(
    ("tasks", "written"),
    [
        (["sts12", "sts13"], {"sts12": "sts12", "sts13": "sts13"}),
        ({"STS-B": "stsb_test", "A": "sts12"}, {"STS-B": "stsb_test", "A": "sts12"}),
    ],
)
def test_tasks_are_columns_in_their_order(tasks, written):
    """Tasks are columns in their order numbered by their block."""
    block, mean = {"method": "a", "encoder": "x"}, MEAN | {"mean_of": list(written)}
    listed = grid(block, columns=[SHARED | {"tasks": tasks}, mean])
    columns = [
        SHARED | {"heading": heading, "task": task, "measured": False} for heading, task in written.items()
    ]
    numbered = [(number, column.model_dump()) for number, column in listed.numbered]
    assert numbered == [*((0, column) for column in columns), (1, mean)]
    assert [column.model_dump() for column in listed.experiment.columns] == [*columns, mean]
