import pytest

from tests.rooms.figures.conftest import FOOTNOTE, drawn, request_of
from workflow_scripts.figures.style import INK, line_look
from workflow_scripts.figures.sweep import SWEEP, draw_panels, rows_of
from workflow_scripts.graph.runs import runs_of
from workflow_scripts.settings.experiment import Experiment

COLUMN = {"suite": "s", "task": "t", "aggregation": "all", "metric": "spearman", "scale": 100, "digits": 2}
GRID = {
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
    "columns": [{"heading": "STS-B", **COLUMN}, {"heading": "Other", **COLUMN}],
}
PLOTS = [
    {"setting": "method.blocks", "label": "blocks n"},
    {"setting": "method.frequencies", "label": "frequencies m"},
]


def asked_for(plots, grid):
    """What is asked of a figure, and the experiment."""
    return request_of("sweep", {"plots": plots}), Experiment.parse(grid, "grid")


def figure_of(asked, data):
    """The figure, and its texts as one."""
    request, experiment = asked
    figure, found = drawn(data, request, draw_panels, experiment)
    return figure, " ".join(found)


def points_of(asked, rows):
    """What is asked, and its points."""
    request, experiment = asked
    return asked, rows_of(request.config, experiment, rows)


def made(grid, plots=PLOTS[:1], **score):
    """What is asked, and points of a grid whose runs all have one score."""
    asked = asked_for(plots, grid)
    score = {"mean": 70.0, "sd": 0.1, "seeds": 2} | score
    rows = [{"run": run, "heading": "STS-B", **score} for run in runs_of(asked[1].model_dump())]
    return points_of(asked, rows)


def table(missing=()):
    rows = []
    for method in ("s2sent", "promptbert"):
        for blocks in (1, 3):
            for m in (1, 4, 16):
                run = f"{method}.x.c.blocks{blocks}-frequencies{m}"
                score = None if run in missing else 70.0 + blocks + m / 100
                rows += [{"run": run, "heading": "STS-B", "mean": score, "sd": 0.1, "seeds": 2}]
                rows += [{"run": run, "heading": "Other", "mean": 0.0, "sd": 0.0, "seeds": 2}]
    rows.append({"run": "base.x", "heading": "STS-B", "mean": 1.0, "sd": None, "seeds": 1})
    return points_of(asked_for(PLOTS, GRID), rows)


def test_every_swept_run_stands_once_for_each_setting_at_its_value():
    _, data = table()
    assert data.schema == SWEEP
    assert len(data) == 2 * 12
    rows = data.to_pylist()
    assert {row["heading"] for row in rows} == {"STS-B"}
    assert "base.x" not in {row["run"] for row in rows}
    (row,) = [
        r
        for r in rows
        if r["run"] == "s2sent.x.c.blocks3-frequencies4" and r["setting"] == "method.frequencies"
    ]
    assert (row["value"], row["place"], row["series"], row["mean"]) == ("4", 1, "s2sent.x.c", 73.04)


def test_the_figure_has_a_panel_per_setting_with_its_unit_and_its_series():
    figure, found = figure_of(*table(missing=["s2sent.x.c.blocks1-frequencies1"]))
    for text in ("blocks n", "frequencies m", "STS-B", "s2sent", "promptbert", FOOTNOTE, "Points: runs"):
        assert text in found
    for axes in figure.axes:  # whose label is no longer than its panel
        assert axes.yaxis.label.get_window_extent().height < axes.get_window_extent().height


@pytest.mark.parametrize(
    ("said", "yes", "no"),
    [
        ("Dotted: the baseline", {"grid": GRID | {"baseline": "base.x"}}, {}),
        ("Every point is a single value", {"seeds": 1}, {"seeds": 2}),
        ("No run of the sweep has a score.", {"mean": None}, {"mean": 70.0}),
    ],
)
def test_the_figure_says_what_there_is_and_is_not(said, yes, no):
    assert said in figure_of(*made(**{"grid": GRID} | yes))[1]
    assert said not in figure_of(*made(**{"grid": GRID} | no))[1]


def placed():
    """A swept k beside a run that says where it lies, and a run that lies nowhere."""
    block = {"method": "three_r", "encoder": "x", "corpus": "c"}
    grid = GRID | {
        "baseline": "base.x",
        "runs": [
            {"method": "base", "encoder": "x"},
            block | {"at": {"method.k": 6}},
            block | {"sweep": {"method.k": [16, 2]}},
            block | {"tag": "none", "overrides": {"method": {"k": 3}}, "at": {"method.k": None}},
        ],
    }
    plots = [
        {"setting": "method.k", "label": "exemplars"},
        {"setting": "method.k", "label": "exemplars", "heading": "Other"},
    ]
    runs = ["base.x", "three_r.x.c", "three_r.x.c.k16", "three_r.x.c.k2", "three_r.x.c.none"]
    rows = [
        {"run": run, "heading": heading, "mean": mean + place, "sd": 0.1, "seeds": 2}
        for heading, mean in (("STS-B", 70.0), ("Other", 5.0))
        for place, run in enumerate(runs)
    ]
    return points_of(asked_for(plots, grid), rows)


def test_numbers_stand_in_their_order_and_runs_that_differ_in_tag_alone_are_one_series():
    _, data = placed()
    rows = [row for row in data.to_pylist() if row["heading"] == "STS-B" and row["place"] is not None]
    found = {row["place"]: (row["value"], row["run"], row["mean"]) for row in rows}
    assert found == {
        0: ("2", "three_r.x.c.k2", 73.0),
        1: ("6", "three_r.x.c", 71.0),
        2: ("16", "three_r.x.c.k16", 72.0),
        3: ("None", "three_r.x.c.none", 74.0),
    }
    assert {row["series"] for row in rows} == {"three_r.x.c"}


def test_a_panel_may_show_another_column_and_every_panel_has_the_baseline():
    asked, data = placed()
    lines = [row for row in data.to_pylist() if row["place"] is None]
    assert [(row["run"], row["heading"], row["mean"]) for row in lines] == [
        ("base.x", "STS-B", 70.0),
        ("base.x", "Other", 5.0),
    ]
    found = figure_of(asked, data)[1]
    for text in ("STS-B", "Other", "exemplars", "baseline"):
        assert text in found


def test_series_with_different_baselines_have_a_line_each():
    swept = {"corpus": "c", "sweep": {"method.k": [2, 6]}}
    runs = [{"method": "base", "encoder": ["x", "y"]}, {"method": "three_r", "encoder": ["x", "y"]} | swept]
    plots = [{"setting": "method.k", "label": "k"}]
    asked, data = made(GRID | {"baseline": "base.{encoder}", "runs": runs}, plots)
    lines = [(row["run"], row["series"]) for row in data.to_pylist() if row["place"] is None]
    assert lines == [("base.x", "three_r.x.c"), ("base.y", "three_r.y.c")]
    assert "one for each series" in figure_of(asked, data)[1]


def test_a_measured_column_is_no_headline():
    """Times are in a table of their own, which no figure reads."""
    grid = GRID | {"columns": [{"heading": "ms", **COLUMN, "measured": True}, *GRID["columns"][:1]]}
    assert set(made(grid)[1]["heading"].to_pylist()) == {"STS-B"}


TWO_BASELINES = GRID | {
    "baseline": None,
    "runs": [
        {"method": ["base", "other"], "encoder": "x"},
        {"method": "s2sent", "encoder": "x", "sweep": {"method.blocks": [1, 3]}, "baseline": "base.x"},
        {"method": "three_r", "encoder": "x", "sweep": {"method.blocks": [1, 3]}, "baseline": "other.x"},
    ],
}


def lines_drawn(unscored):
    """Heights and colours of the baselines, and how many other lines there are, without the scores of some runs."""
    scores = {run: 50.0 if run == "other.x" else 70.0 for run in runs_of(TWO_BASELINES)}
    rows = [
        {"run": run, "heading": "STS-B", "mean": None if unscored(run) else score, "sd": 0.1, "seeds": 2}
        for run, score in scores.items()
    ]
    (axes,) = figure_of(*points_of(asked_for(PLOTS[:1], TWO_BASELINES), rows))[0].axes
    level = [line for line in axes.lines if line.get_linewidth() == 0.8]
    others = [line for line in axes.lines if line.get_linestyle() != "None" and line not in level]
    return [(line.get_ydata()[0], line.get_color()) for line in level], len(others)


FIRST, SECOND = ((height, line_look(number)["color"]) for number, height in enumerate((70.0, 50.0)))


@pytest.mark.parametrize(
    ("unscored", "baselines", "others"),
    [
        ([], [FIRST, SECOND], 2),
        (["base"], [SECOND], 2),
        (["three_r"], [FIRST], 1),
        (["three_r", "base"], [], 1),
    ],
)
def test_a_baseline_has_the_colour_of_its_series_and_goes_with_it(unscored, baselines, others):
    assert lines_drawn(lambda run: run.startswith(tuple(unscored))) == (baselines, others)


def test_a_baseline_that_is_called_as_its_series_has_that_ones_colour():
    """A method is compared with what it is without the setting, which has the name of the series."""
    methods = {"method": ["s2sent", "three_r"], "encoder": "x", "corpus": "c"}
    runs = [methods | {"at": {"method.blocks": 0}}, methods | {"sweep": {"method.blocks": [1, 3]}}]

    def colours(**changes):
        (axes,) = figure_of(*made(GRID | {"runs": runs} | changes))[0].axes
        return [
            line.get_color()
            for line in axes.lines
            if list(line.get_xdata()) == [0, 1] and line.get_linewidth() == 0.8
        ]

    assert colours(baseline="{method}.x.c") == [line_look(number)["color"] for number in (0, 1)]
    assert colours(baseline="s2sent.x.c") == [INK]


def test_a_series_has_one_colour_in_all_panels_and_a_name_where_another_panel_shows_another():
    runs = [
        {"method": "s2sent", "encoder": "x", "sweep": {"method.blocks": [1, 3]}},
        {"method": "three_r", "encoder": "x", "sweep": {"method.k": [2, 6]}},
    ]
    plots = [PLOTS[0], {"setting": "method.k", "label": "exemplars"}]
    figure, _ = figure_of(*made(GRID | {"runs": runs}, plots))
    for number, (axes, name) in enumerate(zip(figure.axes, ("s2sent", "three_r"), strict=True)):
        assert {line.get_color() for line in axes.lines} == {line_look(number)["color"]}
        assert [text.get_text() for text in axes.get_legend().get_texts()] == [name]


@pytest.mark.parametrize(("sd", "lengths"), [(0.5, {1.0}), (None, set())])
def test_a_point_has_a_bar_of_one_standard_deviation_and_none_where_it_is_not_known(sd, lengths):
    (axes,) = figure_of(*made(TWO_BASELINES, sd=sd))[0].axes
    bars = [line for bar in axes.collections for line in bar.get_segments() if len(line)]
    assert {round(float(line[1, 1] - line[0, 1]), 6) for line in bars} - {float("nan")} == lengths
