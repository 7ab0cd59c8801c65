import pytest

from tests.planning import DEMO, ROOT, merged_config
from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.checks import read_grids
from workflow_scripts.graph.configuration import read_yaml
from workflow_scripts.graph.mistakes import mistakes
from workflow_scripts.graph.runs import all_runs, run_settings, runs_of
from workflow_scripts.graph.slices import at
from workflow_scripts.settings.study import Grid, Study
from workflow_scripts.tools.schema import schema_of


def test_the_schema_for_editors_has_every_key_and_every_range():
    defined = schema_of("configuration")["$defs"]
    assert {*defined["Study"]["properties"]} == {*merged_config(ROOT, DEMO)}
    assert defined["Training"]["properties"]["batch_size"]["exclusiveMinimum"] == 1


HUB_ENCODER = {"kind": "hub", "repository": "team/model"}


@pytest.mark.parametrize(
    ("block", "found"),
    [
        ({"fetch": {"sources": [HUB_ENCODER], "licence": "MIT"}}, []),
        ({"sources": [HUB_ENCODER]}, ["encoders.mine: {'sources': [{'kind': 'hub', 'repository': 'team/model'}]} is not a block with fetch or a block with adapt or"]),
        (5, ["encoders.mine: 5 is not a block of settings."]),
        ({"runs": [{"method": "simcse", "encoder": "a", "corpus": "b"}], "lable": "x"}, ["encoders.mine: without label", "encoders.mine.lable: unknown key. Did you mean label"]),
        ({"fetch": {"sources": [{"kind": "hub"}], "licence": "MIT"}}, ["encoders.mine.fetch.sources.0: without repository"]),
        ({"fetch": {"sources": [{"kind": "hubb"}], "licence": "MIT"}}, ["encoders.mine.fetch.sources.0.kind: 'hubb' is none of hub, local"]),
        ({"fetch": {"sources": [{"repository": "a"}], "licence": "MIT"}}, ["encoders.mine.fetch.sources.0: without kind"]),
        ({"fetch": {"sources": [HUB_ENCODER | {"path": "a"}], "licence": "MIT"}}, ["encoders.mine.fetch.sources.0.path: unknown key. Known: kind, repository"]),
    ],
)  # fmt: skip
def test_a_block_of_several_forms_is_told_what_its_nearest_form_lacks(block, found):
    config = merged_config(ROOT, DEMO)
    config["encoders"]["mine"] = block
    lines = mistakes(Study, config, "")
    assert len(lines) == len(found)
    assert all(line.startswith(start) for line, start in zip(lines, found, strict=True))


def test_every_grid_is_what_the_class_reads():
    for file in (ROOT / "config/experiments").glob("*.yaml"):
        Grid.strictly(read_yaml(file))


def grid(*runs: dict, **changes: object) -> dict:
    return {"title": "toy", "seeds": [1, 2], "runs": list(runs)} | changes


def test_axes_that_list_values_are_multiplied_and_named():
    runs = runs_of(grid({"method": ["a", "b"], "encoder": ["x", "y"], "corpus": "c", "tag": "t"}))
    assert list(runs) == ["a.x.c.t", "a.y.c.t", "b.x.c.t", "b.y.c.t"]
    assert runs_of(grid({"method": "a", "encoder": "x"}))["a.x"].seeds == (0,)  # nothing is drawn


def test_two_different_runs_of_one_name_are_refused():
    first = {"method": "a", "encoder": "x", "corpus": "c"}
    with pytest.raises(ConfigError, match=r"two runs are named a\.x\.c"):
        runs_of(grid(first, first | {"overrides": {"training": {"max_steps": 3}}}))


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


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (["none", "gap"], ["squeeze-none", "squeeze-gap"]),
        ([[0], [10, 11]], ["squeeze0", "squeeze10_11"]),
        ([True, False], ["squeeze-true", "squeeze-false"]),
    ],
)
def test_values_of_all_kinds_make_names_that_can_be_told_apart(values, names):
    block = {"method": "a", "encoder": "x", "sweep": {"method.squeeze": values}}
    assert list(runs_of(grid(block))) == [f"a.x.{name}" for name in names]


def test_runs_lie_where_they_say_in_the_figures_of_the_papers():
    """A block's ``at`` repeats what its settings, or those of its pool, already are."""
    config, checked = merged_config(ROOT, "config/config.yaml"), []
    for name, described in read_grids(config, ROOT / "config")[0].items():
        for block in described["runs"]:
            for run in runs_of(grid(block)).values():
                settings = run_settings(config, run)
                settings["exemplars"] = config["exemplars"].get(settings["method"].get("pool"), {})
                for setting, value in block.get("at", {}).items():
                    if name != "three_r_table8":  # where SimCSE stands for a threshold of 0
                        assert at(settings, setting) == value, (name, block)
                        checked.append(setting)
    assert {"method.k", "exemplars.list_words", "method.cross_every"} <= set(checked)
