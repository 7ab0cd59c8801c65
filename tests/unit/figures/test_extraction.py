"""Figures of the extraction study, made of scores that are known."""

import importlib
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.unit.reporting.test_extraction import NAMES, VARIANTS, row, rows
from workflow_scripts.columns.extraction import EXTRACTION
from workflow_scripts.figures.base import Request, load_figure
from workflow_scripts.figures.extraction import UNITS, measured
from workflow_scripts.figures.style import figure_style, to_svg
from workflow_scripts.provenance.artefacts import job_record, write_table
from workflow_scripts.reporting.extraction import Scores

FIGURES = {
    "variant_scatter": {
        "x": "IsoScore", "y": "STS", "y_scale": "linear", "note": None, "models": ["BERT", "RE"], "variants": VARIANTS, "correlation": True,
    },
    "layer_lines": {"measures": ["STS"], "series": [{"panel": "plain", "representation": "plain", "weighting": "avg"}, {"panel": "plain", "representation": "random", "weighting": "avg"}], "sums": ["1+last"]},
    "mixing_map": {"measures": ["STS"], "split": True, "representation": "plain", "weighting": "avg", "mixing_weights": [0, 0.5]},
}  # fmt: skip
COUNTS = {"variant_scatter": 2 * 8, "layer_lines": 5 + 5, "mixing_map": 4 * 2 * 2 + 2}


@pytest.fixture
def scores(tmp_path):
    """A file of all scores."""
    file = tmp_path / "scores.parquet"
    record = job_record(
        "extract_scores", settings={}, inputs={}, outputs=[file], wildcards={"representation": "plain"}
    )
    write_table(file, pa.Table.from_pylist(list(rows()), schema=EXTRACTION), record)
    return file


def config_class(kind):
    return importlib.import_module(f"workflow_scripts.settings.figures.{kind}").Config


def request_of(kind, scores, **changes):
    block = {"kind": kind, "title": "T", "below": "x"} | FIGURES[kind] | changes
    config = config_class(kind).model_validate(block)
    return Request(config, {"scores": [scores]}, NAMES.model_dump())


def svg_of(kind, points, request):
    with figure_style():
        asked = request._replace(title="T", footnotes=["a stand-in"])
        figure = load_figure(kind).draw(points, asked)
        return to_svg(figure, "f", "T", "d")


@pytest.mark.parametrize("kind", FIGURES)
def test_a_figure_shows_what_was_scored_and_is_drawn_the_same_each_time(scores, kind):
    request = request_of(kind, scores)
    points = load_figure(kind).points(request)
    assert len(points) == COUNTS[kind]
    svg = svg_of(kind, points, request)
    assert svg == svg_of(kind, points, request)
    assert svg.index("orrelations and accuracies are times 100.") < svg.index("a stand-in")


def test_what_was_scored_in_one_layer_is_a_diamond_and_said_to_be_one(scores):
    request = request_of("layer_lines", scores)
    points = load_figure("layer_lines").points(request)
    plain = points.filter(pc.equal(points["series"], points["series"][0]))
    marked = svg_of("layer_lines", plain.slice(0, 1), request)
    assert f"{UNITS} Diamonds: scored in one layer only." in marked
    assert "Diamonds" not in svg_of("layer_lines", plain.slice(0, 2), request)


def test_names_of_lines_are_above_the_panel_without_what_all_of_them_share(scores):
    """On the lines they could not be read, and the panel's title says the rest."""
    request = request_of("layer_lines", scores)
    module = load_figure("layer_lines")
    with figure_style():
        figure = module.draw(module.points(request), request)
        figure.draw_without_rendering()
    (axes,) = figure.axes
    legend = axes.get_legend()
    assert legend.get_title().get_text() == "plain: avg."
    assert [text.get_text() for text in legend.get_texts()] == ["MiniLM", "random embeddings"]
    assert legend.get_window_extent().y0 > axes.get_window_extent().y1


def test_a_map_is_called_after_its_data_and_says_what_is_mixed(scores):
    request = request_of("mixing_map", scores)
    names = {**request.names, "datasets": {"sts12": "Set A"}, "representations": {"plain": "MiniLM"}}
    svg = svg_of("mixing_map", load_figure("mixing_map").points(request), request._replace(names=names))
    assert ">Set A: " in svg and "MiniLM, of which a share w is its static averages." in svg


def map_of(given, measures=("STS",), **changes):
    """Points of maps of some scores, and the axes that are drawn of them."""
    module = load_figure("mixing_map")
    block = {"kind": "mixing_map", "title": "T", "below": "x", **FIGURES["mixing_map"]}
    config = config_class("mixing_map").model_validate(block | {"measures": [*measures]} | changes)
    table = pa.Table.from_pylist(list(given), schema=EXTRACTION)
    points = module.maps(config, NAMES, Scores([table], NAMES.measures.values()))
    with figure_style():
        drawn = module.draw(points, Request(config, {}, NAMES.model_dump()))
    return points.to_pylist(), drawn.axes


def test_a_map_shows_the_mean_over_draws_whether_tasks_are_split_or_not():
    draws = [
        row("random", task, value, draw=draw, layers="static")
        for task, value in (("sts12", 0.2), ("sts13", 0.4))
        for draw, value in ((1, value), (2, value + 0.1))
    ]
    for split, expected in ((True, [25, 45]), (False, [35])):
        points, _ = map_of(draws, representation="random", split=split)
        assert [point["y"] for point in points] == pytest.approx(expected)


def test_layers_of_a_map_are_in_their_order_where_the_first_measure_lacks_one():
    lacking = [row("plain", "sts12", 0.5, layers=layer, mixing_weight=0.5) for layer in ("0", "2")]
    whole = [
        row("plain", "w", 0.5, layers=layer, mixing_weight=0.5, kind="isotropy", metric="isoscore")
        | {"aggregation": ""}
        for layer in ("0", "1", "2")
    ]
    _, drawn = map_of([*lacking, *whole], ["STS12", "IsoScore"], split=False)
    assert [[tick.get_text() for tick in axes.get_xticklabels()] for axes in drawn] == [["0", "1", "2"]] * 2


def test_a_map_of_one_layer_has_a_width():
    _, (axes,) = map_of([row("plain", "sts12", 0.5, layers="3", mixing_weight=0.5)], ["STS12"])
    assert axes.get_xlim() == (0, 1)


@pytest.mark.parametrize(
    ("tasks", "labels"),
    [
        (["sts12"], ["STS on Set A", "IsoScore"]),
        (["sts12", "sts13"], ["STS", "IsoScore"]),  # of which one has a name
        (["other"], ["STS", "IsoScore"]),
    ],
)
def test_an_axis_names_the_data_of_its_own_measure_where_that_is_one_set(tasks, labels):
    names = NAMES.model_copy(update={"datasets": {"sts12": "Set A"}})
    files = [Path(f"results/s/extraction/scores/sts/plain/{task}.parquet") for task in tasks]
    files += [Path("results/s/extraction/scores/isotropy/plain/wikitext.parquet")]
    request = Request(None, {"scores": files}, names.model_dump())
    assert [measured(request, names, measure) for measure in ("STS", "IsoScore")] == labels


def scatter(scores, **changes):
    """A scatter of isotropy and score as SVG."""
    request = request_of("variant_scatter", scores, **changes)
    return svg_of("variant_scatter", load_figure("variant_scatter").points(request), request)


def test_the_correlation_of_isotropy_and_score_is_one_where_both_rise_together(scores):
    assert "BERT (r = 1.00)" in scatter(scores)


def test_a_logarithmic_axis_has_plain_numbers_and_the_note_is_printed(scores):
    svg = scatter(scores, y_scale="log", note="Mind the scale.")
    assert "Mind the scale." in svg
    assert "mathdefault" not in svg


def test_points_that_a_logarithmic_axis_cannot_show_are_counted_in_a_note(scores):
    request = request_of("variant_scatter", scores, y_scale="log")
    points = load_figure("variant_scatter").points(request)
    lowered = {"STS: avg.": -1.0, "STS: idf^T": 0.0}
    rows = [
        row | {"mean": lowered[row["run"]]} if row["run"] in lowered and row["heading"] == "BERT" else row
        for row in points.to_pylist()
    ]
    below = pa.Table.from_pylist(rows, schema=points.schema)
    said = "Points at or below 0, which a logarithmic axis does not show: 2."
    assert said in svg_of("variant_scatter", below, request)
    assert "does not show" not in svg_of("variant_scatter", points, request)
    linear = request_of("variant_scatter", scores)
    assert "does not show" not in svg_of("variant_scatter", below, linear)


def test_variants_without_a_point_are_named_with_the_reason(scores):
    assert "Not drawn, for want of scores: RE (not in the study&#x27;s grid)." in scatter(scores).replace(
        "'", "&#x27;"
    )
    assert "Not drawn" not in scatter(scores, models=["BERT"])


def absent(task, representation="plain"):
    """The row of a task that nobody has."""
    nothing = {"layers": "", "weighting": "", "postprocess": "", "metric": "", "aggregation": ""}
    return row(representation, task, None, note="no source", **nothing)


def test_maps_of_other_tasks_are_drawn_where_one_task_is_a_gap():
    given = [row("plain", "sts12", 0.5, layers=layer, mixing_weight=0.5) for layer in ("0", "1")]
    points, drawn = map_of([*given, absent("sts13")], split=True)
    assert {point["panel"] for point in points if point["y"] is not None} == {"sts12"}
    assert {(point["panel"], point["note"]) for point in points if point["y"] is None} == {
        ("sts13", "sts13: no source")
    }
    assert [axes.get_title("left") for axes in drawn] == ["sts12: 50.0"]


@pytest.mark.parametrize("kind", ["mixing_map", "layer_lines"])
def test_what_is_a_gap_is_named_below_the_figure_with_its_reason(kind):
    given = [
        row("plain", "sts12", 0.5, layers=layer, mixing_weight=w) for layer in ("0", "1") for w in (0.0, 0.5)
    ]
    module, request = load_figure(kind), request_of(kind, Path("none"))
    table = pa.Table.from_pylist([*given, absent("sts13")], schema=EXTRACTION)
    make = {"mixing_map": "maps", "layer_lines": "lines"}[kind]
    points = getattr(module, make)(request.config, NAMES, Scores([table], NAMES.measures.values()))
    name = {"mixing_map": "sts13", "layer_lines": "STS | plain, plain, avg."}[kind]
    assert f"Not drawn, for want of scores: {name} (sts13: no source)." in svg_of(kind, points, request)


def test_the_shadow_of_a_line_is_the_standard_deviation_of_a_sample_of_tasks():
    """By hand: 50 and 60 have the mean 55 and, with n - 1, the standard deviation 7.07."""
    given = [row("plain", task, value, layers="0") for task, value in (("sts12", 0.5), ("sts13", 0.6))]
    table = pa.Table.from_pylist(given, schema=EXTRACTION)
    config = request_of("layer_lines", Path("none")).config
    (point,) = (
        load_figure("layer_lines").lines(config, NAMES, Scores([table], NAMES.measures.values())).to_pylist()
    )
    assert (point["y"], point["spread"]) == (pytest.approx(55), pytest.approx(50**0.5))
