"""Figures of tables: swept settings, and runs as points of a plane."""

from types import MappingProxyType

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from matplotlib.collections import PathCollection
from matplotlib.container import ErrorbarContainer

from tests.rooms.figures.conftest import FOOTNOTE, shown
from tests.support.snakemake_plans import expanded
from workflow_scripts.columns import SCORES, TABLE
from workflow_scripts.figures.tables import draw_plane
from workflow_scripts.settings.grids import GridBlock

COLUMN = {"suite": "s", "task": "lee", "aggregation": "all", "metric": "m", "scale": 1, "digits": 2}
GRID = {
    "title": "-", "source": "-", "seeds": [1], "baseline": None, "suites": {"sts": ["s"]}, "runs": [{"method": "base", "encoder": "x"}],
    "columns": [{"heading": name, **COLUMN} for name in ("energy", "STS")],
}  # fmt: skip


@pytest.fixture
def table(stored):
    """Writes a table of runs, each with a mean of both columns."""

    def write(scores, sd=0.1):
        rows = [
            {"run": run, "heading": heading, "mean": mean, "sd": sd}
            for run, means in scores.items()
            for heading, mean in zip(("energy", "STS", "other"), (*means, 7.0), strict=True)
        ]
        return stored(pa.Table.from_pylist(rows, schema=TABLE), {"experiment": expanded(GRID)})

    return write


@pytest.fixture
def scatter(table):
    def draw(scores, **more):
        sd = more.pop("sd", 0.1)
        return shown("scatter", {"x": "energy", "y": "STS"}, {"table": [table(scores, sd)]}, **more)

    return draw


def test_a_point_is_a_run_and_missing_runs_are_listed(scatter):
    """A point is a run and runs without both scores are listed."""
    points, _, found = scatter({"a.x": (0.1, 70), "b.x": (0.2, None), "c.x": (0.3, 80)})
    assert points["run"].tolist() == ["a.x", "b.x", "c.x"]
    expected = [[0.1, 0.1, 70, 0.1], [0.2, 0.1, np.nan, 0.1], [0.3, 0.1, 80, 0.1]]
    np.testing.assert_array_equal(points[["x", "x_sd", "y", "y_sd"]], expected)
    assert "Not drawn, because scores are missing: b.x." in found
    assert "Pearson" not in " ".join(found)  # two points always lie on a line


def test_a_footnote_has_the_correlation_of_the_columns(scatter):
    """By hand: x = 1, 2, 3 and y = 1, 3, 2 have Pearson and Spearman 0.5."""
    found = scatter({"a.x": (1, 1), "b.x": (2, 3), "c.x": (3, 2)}).texts
    said = "Over 3 runs: Pearson 0.50, Spearman 0.50."
    assert {"energy", "STS", said, FOOTNOTE} <= {*found}
    assert "scores are missing: none." in " ".join(found)


def test_points_are_means_and_sds_over_seeds(stored, table):
    """Points are means and sds over seeds with uniformity to the right."""
    cell = {"run": "a.mini", "suite": "geometry", "aggregation": "", "n": 9, "note": "lee, score > 4"}
    scores = []
    for seed, alignment in enumerate((0.1, 0.2, 0.6)):
        values = {
            ("lee", "alignment"): alignment,
            ("lee", "uniformity"): -10 * alignment,
            ("other", "alignment"): 99.0,
        }
        rows = [
            cell | {"seed": seed, "task": task, "metric": metric, "value": value}
            for (task, metric), value in values.items()
        ]
        scores.append(stored(pa.Table.from_pylist(rows, schema=SCORES)))
    files = {"table": [table({"a.mini": (71.0, 1.0)})], "scores": scores}
    points, picture, found = shown("alignment_uniformity", {"task": "lee"}, files)
    (point,) = points.to_dict("records")
    assert (point.pop("run"), point.pop("note")) == ("a.mini", "lee, score > 4")
    assert point == pytest.approx({
        "seeds": 3, "score": 71.0,
        "alignment": 0.3, "alignment_sd": 0.07**0.5, "uniformity": -3, "uniformity_sd": 7**0.5,
    })  # fmt: skip
    points_drawn = [one for one in picture.axes[0].collections if isinstance(one, PathCollection)]
    (drawn_at,) = [one.get_offsets().tolist() for one in points_drawn]
    assert drawn_at == [[pytest.approx(-3), pytest.approx(0.3)]]
    assert {"uniformity on lee (lower is better)", "lee: lee, score > 4.", "energy"} <= {*found}


def test_a_task_that_no_run_has_is_a_figure_of_its_reason(stored, table):
    cell = {
        "suite": "geometry",
        "task": "lee",
        "aggregation": "",
        "metric": "",
        "seed": 0,
        "value": None,
        "n": 0,
    }
    rows = [cell | {"run": run, "note": "no source of the dataset is available"} for run in ("a.x", "b.x")]
    files = {
        "table": [table({"a.x": (1.0, 1.0), "b.x": (2.0, 2.0)})],
        "scores": [stored(pa.Table.from_pylist([row], schema=SCORES)) for row in rows],
    }
    points, picture, found = shown("alignment_uniformity", {"task": "lee"}, files)
    assert picture is None
    assert [*zip(points["run"], points["score"], strict=True)] == [("a.x", 1.0), ("b.x", 2.0)]
    reasons = {"No run has both uniformity and alignment.", "lee: no source of the dataset is available."}
    assert reasons <= {*found}


def bars_of(picture):
    """The ends of all error bars of a picture's first panel: those to the right, then those upwards."""
    (bars,) = [one.lines[2] for one in picture.axes[0].containers if isinstance(one, ErrorbarContainer)]
    return np.array([segment for lines in bars for segment in lines.get_segments()])


def test_each_axis_has_bars_of_one_sd_of_its_own_score():
    point = pd.DataFrame({"run": ["a.x"], "x": [1.0], "x_sd": [0.1], "y": [5.0], "y_sd": [2.0]})
    drawn = draw_plane(point, "x", "y", ["left", "up"])
    np.testing.assert_allclose(bars_of(drawn.figure), [[[0.9, 5], [1.1, 5]], [[1, 3], [1, 7]]])


# Swept settings

SPEARMAN = {"suite": "s", "task": "t", "aggregation": "all", "metric": "spearman", "scale": 100, "digits": 2}
SWEPT = {
    "title": "Blocks",
    "source": "-",
    "seeds": [1, 2],
    "baseline": None,
    "suites": {"sts": ["s"]},
    "runs": [
        {"method": "base", "encoder": "x"},
        {
            "method": ["s2sent", "promptbert"],
            "encoder": "x",
            "corpus": "c",
            "sweep": {"method.blocks": [1, 3], "method.frequencies": [1, 4, 16]},
        },
    ],
    "columns": [{"heading": "STS-B", **SPEARMAN}, {"heading": "Other", **SPEARMAN}],
}
PLOTS = [
    {"setting": "method.blocks", "label": "blocks n"},
    {"setting": "method.frequencies", "label": "frequencies m"},
]


@pytest.fixture
def swept(stored):
    """Draws a grid; all cells have one score, but for those of a run or column in ``means``."""

    def draw(grid=SWEPT, plots=PLOTS[:1], means=MappingProxyType({}), **score):
        score = {"mean": 70.0, "sd": 0.1, "seeds": 2} | score
        rows = [
            {"run": run, "heading": name, **score, "mean": means.get(run, means.get(name, score["mean"]))}
            for run in GridBlock.strictly(grid).expanded
            for name in (column["heading"] for column in expanded(grid)["columns"])
        ]
        table = stored(pa.Table.from_pylist(rows, schema=TABLE), {"experiment": expanded(grid)})
        return shown("sweep", {"plots": plots}, {"table": [table]})

    return draw


def rows_of(points):
    """Rows with None where a value is missing."""
    return points.astype(object).where(points.notna(), None).to_dict("records")


def test_every_swept_run_has_a_point_for_each_setting(swept):
    one = "s2sent.x.c.blocks3-frequencies4"
    data = rows_of(swept(SWEPT, PLOTS, {one: 73.04}).data)
    assert len(data) == 2 * 12
    rows = {(row["run"], row["setting"]): row for row in data}
    assert len(rows) == len(data)
    assert "base.x" not in {run for run, _ in rows}
    expected = {"value": "4", "place": 1, "series": "s2sent.x.c", "mean": 73.04, "heading": "STS-B"}
    assert rows[one, "method.frequencies"].items() >= expected.items()


def test_a_bar_of_a_sweep_is_one_sd(swept):
    bars = bars_of(swept(sd=0.5).picture)
    assert len(bars) == 12
    np.testing.assert_allclose(bars[:, :, 1], [[69.5, 70.5]] * 12)


def test_a_line_of_a_sweep_goes_through_medians(swept):
    """For each number of blocks, there are runs with three numbers of frequencies."""
    means = {
        f"s2sent.x.c.blocks{blocks}-frequencies{count}": mean
        for blocks, three in ((1, (70.0, 73.0, 80.0)), (3, (61.0, 60.0, 50.0)))
        for count, mean in zip((1, 4, 16), three, strict=True)
    }
    (panel,) = swept(means=means).picture.axes
    lines = [line.get_ydata().tolist() for line in panel.lines if len(line.get_xdata()) == 2]
    assert [73, 60] in lines


def test_a_dotted_line_is_at_the_score_of_the_baseline(swept):
    (panel,) = swept(SWEPT | {"baseline": "base.x"}, means={"base.x": 64.0}).picture.axes
    (dotted,) = [line for line in panel.lines if line.get_linestyle() == ":"]
    assert {*dotted.get_ydata()} == {64}


def test_each_series_has_a_baseline_of_its_own_if_they_differ(swept):
    method = {"method": "s2sent", "encoder": ["x", "y"], "corpus": "c", "baseline": "base.{encoder}"}
    runs = [{"method": "base", "encoder": ["x", "y"]}, method | {"sweep": {"method.blocks": [1, 3]}}]
    points = rows_of(swept(SWEPT | {"runs": runs}).data)
    baselines = {(row["run"], row["series"]) for row in points if row["place"] is None}
    assert baselines == {("base.x", "s2sent.x.c"), ("base.y", "s2sent.y.c")}


def test_runs_with_a_given_value_are_points_next_to_swept_ones(swept):
    """Runs that differ in tag alone are one series; a baseline has no place; a panel may show another column."""
    block = {"method": "three_r", "encoder": "x", "corpus": "c"}
    runs = [
        {"method": "base", "encoder": "x"},
        block | {"values": {"method.k": 6}},
        block | {"sweep": {"method.k": [16, 2]}},
        block | {"tag": "none", "overrides": {"method": {"k": 3}}, "values": {"method.k": None}},
    ]
    plot = {"setting": "method.k", "label": "exemplars"}
    plots = [plot, plot | {"heading": "Other"}]
    drawn = swept(SWEPT | {"baseline": "base.x", "runs": runs}, plots, {"Other": 5.0})
    of_panel = [
        ("three_r.x.c", "6", 1, "three_r.x.c"),
        ("three_r.x.c", "None", 3, "three_r.x.c.none"),
        ("three_r.x.c", "16", 2, "three_r.x.c.k16"),
        ("three_r.x.c", "2", 0, "three_r.x.c.k2"),
        ("base.x", None, None, "base.x"),
    ]
    expected = {(*row, *cell) for row in of_panel for cell in (("STS-B", 70.0), ("Other", 5.0))}
    columns = ("series", "value", "place", "run", "heading", "mean")
    assert {tuple(row[name] for name in columns) for row in rows_of(drawn.data)} == expected
    for text in ("STS-B", "Other", "exemplars", "baseline"):
        assert text in drawn.said


def test_a_panel_whose_column_no_run_has_says_so(swept):
    plots = [PLOTS[0], PLOTS[0] | {"heading": "Other"}]
    drawn = swept(SWEPT, plots, {"Other": None})
    scored, empty = drawn.picture.axes
    assert len(scored.collections) > 0
    assert len(empty.collections) == 0
    assert empty.get_title() == "No run has a score."
