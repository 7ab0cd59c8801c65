import pytest

from tests.jobs import begin_here
from tests.unit.reporting.conftest import drawing, inside
from workflow_scripts.errors import ConfigError
from workflow_scripts.figures.base import Request
from workflow_scripts.figures.scatter import COLUMNS, Config, both_scores, draw
from workflow_scripts.figures.style import figure_style, to_svg

SHOWN = Config(x="energy", y="STS")


def table(*scores):
    """Rows of runs a, b, c, ... with an energy and an STS score each."""
    return [
        {"run": f"{name}.x", "heading": heading, "mean": mean, "sd": 0.1}
        for name, pair in zip("abcdefghij", scores, strict=False)
        for heading, mean in zip(("energy", "STS", "other"), (*pair, 7.0), strict=True)
    ]


def svg_of(data):
    with figure_style():
        return to_svg(
            draw(data, Request(SHOWN, title="A title", footnotes=["a stand-in"])),
            "scatter",
            "A title",
            "About",
        )


def test_a_row_is_a_run_and_one_without_both_scores_is_named_below_the_figure():
    data = both_scores(table((0.1, 70), (0.2, None), (0.3, 80)), SHOWN)
    assert data.schema == COLUMNS
    assert data.to_pylist() == [
        {"run": "a.x", "x": 0.1, "x_sd": 0.1, "y": 70.0, "y_sd": 0.1},
        {"run": "b.x", "x": 0.2, "x_sd": 0.1, "y": None, "y_sd": 0.1},
        {"run": "c.x", "x": 0.3, "x_sd": 0.1, "y": 80.0, "y_sd": 0.1},
    ]
    svg = svg_of(data)
    assert "Without a point, for want of scores: b.x." in svg
    assert "Pearson" not in svg  # two points always lie on a line


def test_the_figure_says_how_the_columns_correlate():
    """By hand: x = 1, 2, 3 and y = 1, 3, 2 have Pearson and Spearman 0.5."""
    svg = svg_of(both_scores(table((1, 1), (2, 3), (3, 2)), SHOWN))
    for text in ("energy", "STS", "Over 3 runs: Pearson 0.50, Spearman 0.50", "a stand-in", ">b<"):
        assert text in svg
    assert "Without a point" not in svg


def test_no_run_with_both_scores_says_so():
    assert "No run has both energy and STS." in svg_of(both_scores(table((1, None)), SHOWN))


def test_a_column_that_is_not_there_is_refused():
    with pytest.raises(ConfigError, match=r"scatter: gain is no heading; has \['energy', 'STS', 'other'\]"):
        both_scores(table((1, 1)), Config(x="gain", y="STS"))


def test_the_job_draws_two_columns_of_the_table(finished, tmp_path):
    table = {"table": ["results/demo/tables/lab.parquet"]}
    with inside(finished.parent.parent):
        begin_here(*drawing(tmp_path / "lab", {"scatter": ({"x": "STS12", "y": "STS-B"}, table)}))
    svg = (tmp_path / "lab/scatter.svg").read_text()
    for text in ("Two scores of every run: A grid", "STS12", "Frozen [CLS]", "Substitution"):
        assert text in svg
