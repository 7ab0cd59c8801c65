"""The main comparison as a picture, by hand."""

from types import SimpleNamespace

import pytest

from workflow_scripts.reporting.page import Axis, compare_runs


def row(run, mean, sd, seeds, published=None):
    return {"run": run, "heading": "STS", "mean": mean, "sd": sd, "seeds": seeds, "published": published}


def test_an_axis_has_some_air_and_round_numbers():
    """From 30 to 50: one more at both ends, of which 30 is a twenty-second."""
    axis = Axis.over([50.0, 30.0, 41.0])
    assert axis == (29.0, 51.0) and axis.place(40.0) == 50 and axis.place(None) is None
    assert axis.ticks() == [(4.55, "30"), (27.27, "35"), (50.0, "40"), (72.73, "45"), (95.45, "50")]
    assert [text for _, text in Axis.over([-0.03, 0.03]).ticks()] == ["\N{MINUS SIGN}0.02", "0.00", "0.02"]


def test_runs_are_dots_the_baseline_a_line_and_the_papers_value_a_mark():
    lines = [SimpleNamespace(cells=["other", name]) for name in "ab"]
    sheet = SimpleNamespace(
        view=SimpleNamespace(alpha=0.05),
        only_baseline="a",
        lines=lines,
        heads=[SimpleNamespace(text=name) for name in ("x", "STS")],
    )
    drawn = compare_runs(sheet, [row("a", 30.0, None, 1), row("b", None, None, 0, published=50.0)])
    assert drawn["base"] == drawn["runs"][0]["at"] == 4.55 and drawn["runs"][0]["ends"] == [4.55, 4.55]
    assert (drawn["runs"][1]["at"], drawn["runs"][1]["printed_at"]) == (None, 95.45)
    assert drawn["printed"] and [one["cell"] for one in drawn["runs"]] == ["a", "b"]
    assert compare_runs(sheet, [row("a", None, None, 0)]) == {}


def test_an_interval_is_students():
    """With 5 seeds, t(.975, 4) is 2.776: 10 -+ 2.776 * 2 / sqrt(5), and one part in twenty of air at both ends."""
    sheet = SimpleNamespace(
        view=SimpleNamespace(alpha=0.05),
        only_baseline=None,
        lines=[SimpleNamespace(cells=["own"])],
        heads=[SimpleNamespace(text="STS")],
    )
    (drawn,) = compare_runs(sheet, [row("a", 10.0, 2.0, 5, published=12.483)])["runs"]
    assert drawn["ends"] == pytest.approx([4.55, 95.45]) and drawn["printed_at"] == pytest.approx(
        95.45, abs=0.02
    )
