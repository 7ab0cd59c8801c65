import numpy as np
import pyarrow as pa
import pytest

from workflow_scripts.columns.training import METRICS
from workflow_scripts.config import Settings
from workflow_scripts.figures.base import Request
from workflow_scripts.figures.style import figure_style, to_svg
from workflow_scripts.figures.threshold_path import COLUMNS, HOW_DRAWN, draw, paths
from workflow_scripts.reporting.records import RunTable

REQUEST = Request(Settings())


def metrics(steps, start=1.0):
    """A threshold that falls to 0.273, and 20 dimensions below it."""
    path = 0.273 + (start - 0.273) * np.exp(-np.arange(steps) / 50)
    rows = [
        (s + 1, q, v) for s in range(steps) for q, v in (("threshold", path[s]), ("reduced_dimensions", 20.0))
    ]
    columns = list(zip(*rows, strict=True))
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, METRICS, strict=True)], schema=METRICS)


def histories(steps=300):
    return [RunTable(f"simcse_3r.a.{run}", seed, metrics(steps)) for run in ("x", "y") for seed in (1, 2)]


def test_a_long_path_is_thinned_out_and_keeps_its_ends():
    table = paths(histories(5000))
    assert table.schema == COLUMNS
    path = table.to_pandas().query("run == 'simcse_3r.a.x' and seed == 1 and metric == 'threshold'")
    assert len(path) == 200
    assert (path["step"].iloc[0], path["step"].iloc[-1]) == (1, 5000)
    assert path["value"].iloc[0] == pytest.approx(1.0)


def test_a_short_path_is_kept_whole():
    assert len(paths([RunTable("a", 1, metrics(7))])) == 14


def test_runs_without_a_threshold_have_no_points_and_an_empty_figure_says_so():
    table = paths([RunTable("simcse", 1, METRICS.empty_table())])
    assert len(table) == 0
    with figure_style():
        svg = to_svg(
            draw(table, REQUEST._replace(title="Title", footnotes=[])), "name", "Title", "Description"
        )
    assert "No run of this experiment has a threshold." in svg


def test_the_figure_shows_both_quantities_and_its_footnotes():
    with figure_style():
        svg = to_svg(
            draw(paths(histories()), REQUEST._replace(title="A title", footnotes=["a stand-in"])),
            "name",
            "A title",
            "About it",
        )
    for text in (
        "threshold c",
        "dimensions",
        "below c",
        "A title",
        "a stand-in",
        HOW_DRAWN,
        ">x<",
        ">y<",
        "seed 1",
        "seed 2",
    ):
        assert text in svg


def test_a_path_of_one_step_is_a_diamond_and_said_to_be_one():
    drawn = {}
    for steps in (1, 2):
        with figure_style():
            found = draw(paths(histories(steps)), REQUEST._replace(title="A title", footnotes=[]))
            drawn[steps] = (
                to_svg(found, "name", "A title", "About it"),
                found.axes[0].get_lines()[0].get_marker(),
            )
    assert "Diamonds: measured at one step only." in drawn[1][0] and drawn[1][1] == "D"
    assert "Diamonds" not in drawn[2][0] and drawn[2][1] != "D"
