"""Lines over optimiser steps: what is averaged, what is thinned out, and what the figure says of it."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rooms.figures.conftest import FOOTNOTE, drawn, request_of
from workflow_scripts.columns.training import HISTORY, METRICS
from workflow_scripts.figures.curves import curves, paths
from workflow_scripts.reporting.records import RunTable

LOSS = request_of("learning_curves", {"loss_blocks": 10})
PATHS = request_of("threshold_path", {})


def history(losses, dev=None, run="simcse.mini.wiki", seed=1):
    columns = [range(1, len(losses) + 1), losses, losses, losses, dev or [None] * len(losses)]
    return RunTable(run, seed, pa.table(columns, names=HISTORY.names).cast(HISTORY))


def metrics(steps, run="simcse_3r.a.x", seed=1):
    """A threshold that falls from 1 to 0.273, and 20 dimensions below it."""
    path = 0.273 + 0.727 * np.exp(-np.arange(steps) / 50)
    rows = [
        {"step": step + 1, "metric": name, "value": value}
        for step in range(steps)
        for name, value in (("threshold", path[step]), ("reduced_dimensions", 20.0))
    ]
    return RunTable(run, seed, pa.Table.from_pylist(rows, schema=METRICS))


def of(points, metric):
    return points.filter(pc.equal(points["metric"], metric))


@given(st.lists(st.floats(0.1, 10), min_size=2, max_size=200), st.integers(2, 50))
def test_blocks_cover_every_step_once(losses, blocks):
    found = curves([history(losses)], blocks)
    assert len(found) == min(blocks, len(losses))
    sizes = [len(block) for block in np.array_split(losses, len(found))]
    assert np.average(found["value"].to_numpy(), weights=sizes) == pytest.approx(np.mean(losses))
    assert np.average(found["step"].to_numpy(), weights=sizes) == pytest.approx((len(losses) + 1) / 2)


@pytest.mark.parametrize(
    ("lengths", "said"),
    [
        ([10], "every step."),
        ([12], "means of blocks of 1 to 2 steps."),
        ([40], "means of blocks of 4 steps."),
        ([10, 40], "means of blocks of 1 to 4 steps."),
        ([1, 40], "means of blocks of 1 to 4 steps."),
        ([40, 30], "means of blocks of 3 to 4 steps."),
    ],
)
def test_the_figure_says_how_the_loss_was_averaged(lengths, said):
    histories = [history([1.0] * steps, run=f"a{steps}.mini") for steps in lengths]
    found = drawn(curves(histories, 10), LOSS, "learning_curves")[1]
    assert any(text.startswith("One seed. ") and text.endswith(f"Loss: {said}") for text in found)
    assert FOOTNOTE in found


def test_development_scores_are_drawn_where_they_were_measured():
    dev = of(curves([history([3, 2, 1, 1], [None, 0.5, None, 0.7])], 2), "dev_score")
    assert (dev["step"].to_pylist(), dev["value"].to_pylist()) == ([2, 4], [0.5, 0.7])


def test_a_thick_line_is_the_mean_over_seeds_where_all_of_them_were_measured():
    data = curves([history([2.0, 4.0]), history([4.0, 8.0, 1.0], seed=2)], 10)
    figure, found = drawn(data, LOSS, "learning_curves")
    (thick,) = [line for line in figure.axes[0].lines if line.get_linewidth() == 1.6]
    assert thick.get_xydata().tolist() == [[1, 3], [2, 6]]
    assert sum(line.get_linewidth() == 0.7 for line in figure.axes[0].lines) == 2
    assert any(text.startswith("Thick lines: mean over 2 seeds; thin lines: single seeds.") for text in found)


def test_what_was_measured_once_is_a_diamond_and_said_to_be_one():
    said = "Diamonds: measured at one step only."
    for steps, once in ((1, True), (2, False)):
        figure, found = drawn(paths([metrics(steps)]), PATHS, "threshold_path")
        assert (figure.axes[0].lines[0].get_marker() == "D") == once
        assert any(said in text for text in found) == once
    for scores, once in (([None, 0.5], True), ([0.4, 0.5], False)):
        found = drawn(curves([history([3, 2], scores)], 2), LOSS, "learning_curves")[1]
        assert any(said in text for text in found) == once


def test_many_runs_each_keep_a_name_that_covers_no_other():
    histories = [history([3.0, 1.0], [0.7] * 2, f"method{n}.mini.wiki") for n in range(20)]
    figure, _ = drawn(curves(histories, 10), LOSS, "learning_curves")
    above, below = (axes.get_legend() for axes in figure.axes)
    for legend in (above, below):
        names = [name.get_text() for name in legend.get_texts()]
        assert sorted(names) == sorted(f"method{n}" for n in range(20))
    assert above.get_window_extent().y0 > below.get_window_extent().y1


@pytest.mark.parametrize(("last", "scale"), [(0.1, "log"), (1.0, "linear")])
def test_a_loss_that_falls_far_has_a_logarithmic_axis_and_the_label_says_so(last, scale):
    figure, found = drawn(curves([history([3.0, last])], 2), LOSS, "learning_curves")
    assert figure.axes[0].get_yscale() == scale
    assert ("(of its method, log scale)" in found) == (scale == "log")


def test_a_long_path_is_thinned_out_and_keeps_its_ends_and_a_short_one_is_kept_whole():
    path = of(paths([metrics(5000)]), "threshold").to_pylist()
    assert len(path) == 200 and path[0]["value"] == pytest.approx(1)
    assert (path[0]["step"], path[-1]["step"]) == (1, 5000)
    assert len(paths([metrics(7)])) == 14


def test_paths_have_a_row_of_panels_for_each_run_and_a_line_for_each_seed():
    data = paths([metrics(300, f"simcse_3r.a.{run}", seed) for run in "xy" for seed in (1, 2)])
    figure, found = drawn(data, PATHS, "threshold_path")
    assert {"threshold c", "x", "y", "seed 1", "seed 2", "A title", FOOTNOTE} <= {*found}
    for number, axes in enumerate(figure.axes):
        assert [line.get_ydata()[0] == 20 for line in axes.lines] == [number % 2 == 1] * 2
