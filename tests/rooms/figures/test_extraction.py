"""Figures of the extraction study, made of scores that are known."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.rooms.figures.conftest import FOOTNOTE, drawn, request_of
from tests.rooms.reporting.test_extraction import NAMES, VARIANTS, row, rows
from workflow_scripts.columns.extraction import EXTRACTION
from workflow_scripts.figures.base import Request, load_figure
from workflow_scripts.figures.extraction import lines, maps, measured
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


def asked_for(kind, scores=Path("none"), **changes):
    block = {"kind": kind, "title": "T", "below": "x"} | FIGURES[kind] | changes
    return request_of(kind, block, inputs={"scores": [scores]}, names=NAMES.model_dump())


def made(kind, scores, **changes):
    """What is asked of a figure, and its points."""
    request = asked_for(kind, scores, **changes)
    return request, load_figure(kind).points(request)


def said_of(kind, points, request):
    """All texts of a figure, as one."""
    return " ".join(drawn(points, request, kind)[1])


@pytest.mark.parametrize("kind", FIGURES)
def test_a_figure_shows_what_was_scored_and_says_its_unit(scores, kind):
    request, points = made(kind, scores)
    assert len(points) == COUNTS[kind]
    said = said_of(kind, points, request)
    assert said.index("orrelations and accuracies are times 100.") < said.index(FOOTNOTE)


def test_what_was_scored_in_one_layer_is_a_diamond_and_said_to_be_one(scores):
    request, points = made("layer_lines", scores)
    plain = points.filter(pc.equal(points["series"], points["series"][0]))
    marked = said_of("layer_lines", plain.slice(0, 1), request)
    assert "times 100. Diamonds: scored in one layer only." in marked
    assert "Diamonds" not in said_of("layer_lines", plain.slice(0, 2), request)


def test_names_of_lines_are_above_the_panel_without_what_all_of_them_share(scores):
    """On the lines they could not be read, and the panel's title says the rest."""
    request, points = made("layer_lines", scores)
    (axes,) = drawn(points, request, "layer_lines")[0].axes
    legend = axes.get_legend()
    assert legend.get_title().get_text() == "plain: avg."
    assert [text.get_text() for text in legend.get_texts()] == ["MiniLM", "random embeddings"]
    assert legend.get_window_extent().y0 > axes.get_window_extent().y1


def test_a_map_is_called_after_its_data_and_says_what_is_mixed(scores):
    request, points = made("mixing_map", scores)
    names = {**request.names, "datasets": {"sts12": "Set A"}, "representations": {"plain": "MiniLM"}}
    said = said_of("mixing_map", points, request._replace(names=names))
    assert " Set A: " in said and "MiniLM, of which a share w is its static averages." in said


def scores_of(rows):
    table = pa.Table.from_pylist(list(rows), schema=EXTRACTION)
    return Scores([table], NAMES.measures.values())


def test_a_map_shows_the_mean_over_draws_whether_tasks_are_split_or_not():
    draws = [
        row("random", task, value, draw=draw, layers="static")
        for task, value in (("sts12", 0.2), ("sts13", 0.4))
        for draw, value in ((1, value), (2, value + 0.1))
    ]
    for split, expected in ((True, [25, 45]), (False, [35])):
        config = asked_for("mixing_map", representation="random", split=split).config
        assert maps(config, NAMES, scores_of(draws))["y"].to_pylist() == pytest.approx(expected)


def test_layers_of_a_map_are_in_their_order_where_the_first_measure_lacks_one():
    lacking = [row("plain", "sts12", 0.5, layers=layer, mixing_weight=0.5) for layer in ("0", "2")]
    whole = [
        row("plain", "w", 0.5, layers=layer, mixing_weight=0.5, kind="isotropy", metric="isoscore")
        | {"aggregation": ""}
        for layer in ("0", "1", "2")
    ]
    request = asked_for("mixing_map", measures=["STS12", "IsoScore"], split=False)
    figure, _ = drawn(maps(request.config, NAMES, scores_of([*lacking, *whole])), request, "mixing_map")
    ticks = [[tick.get_text() for tick in axes.get_xticklabels()] for axes in figure.axes]
    assert ticks == [["0", "1", "2"]] * 2


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
    """All texts of a scatter of isotropy and score."""
    request, points = made("variant_scatter", scores, **changes)
    return said_of("variant_scatter", points, request)


def test_a_scatter_says_how_measures_correlate_and_prints_its_note(scores):
    assert "BERT (r = 1.00)" in scatter(scores)  # both rise together
    said = scatter(scores, y_scale="log", note="Mind the scale.")
    assert "Mind the scale." in said and "mathdefault" not in said


def test_points_that_a_logarithmic_axis_cannot_show_are_counted_in_a_note(scores):
    request, points = made("variant_scatter", scores, y_scale="log")
    lowered = {"STS: avg.": -1.0, "STS: idf^T": 0.0}
    rows = [
        row | {"mean": lowered[row["run"]]} if row["run"] in lowered and row["heading"] == "BERT" else row
        for row in points.to_pylist()
    ]
    below = pa.Table.from_pylist(rows, schema=points.schema)
    said = "Points at or below 0, which a logarithmic axis does not show: 2."
    assert said in said_of("variant_scatter", below, request)
    assert "does not show" not in said_of("variant_scatter", points, request)
    assert "does not show" not in said_of("variant_scatter", below, asked_for("variant_scatter"))


def test_variants_without_a_point_are_named_with_the_reason(scores):
    assert "Not drawn, for want of scores: RE (not in the study's grid)." in scatter(scores)
    assert "Not drawn" not in scatter(scores, models=["BERT"])


@pytest.mark.parametrize(
    ("kind", "points_of", "gap", "rest"),
    [
        ("mixing_map", maps, "sts13", "sts12: 50.0"),
        ("layer_lines", lines, "STS | plain, plain, avg.", "No layer was scored."),
    ],
)
def test_a_gap_is_named_below_the_figure_with_its_reason_and_the_rest_is_drawn(kind, points_of, gap, rest):
    nothing = dict.fromkeys(("layers", "weighting", "postprocess", "metric", "aggregation"), "")
    given = [row("plain", "sts12", 0.5, layers=layer, mixing_weight=w) for layer in "01" for w in (0.0, 0.5)]
    given.append(row("plain", "sts13", None, note="no source", **nothing))
    request = asked_for(kind)
    said = said_of(kind, points_of(request.config, NAMES, scores_of(given)), request)
    assert f"Not drawn, for want of scores: {gap} (sts13: no source)." in said and rest in said


def test_the_shadow_of_a_line_is_the_standard_deviation_of_a_sample_of_tasks():
    """By hand: 50 and 60 have the mean 55 and, with n - 1, the standard deviation 7.07."""
    given = [row("plain", task, value, layers="0") for task, value in (("sts12", 0.5), ("sts13", 0.6))]
    (point,) = lines(asked_for("layer_lines").config, NAMES, scores_of(given)).to_pylist()
    assert (point["y"], point["spread"]) == (pytest.approx(55), pytest.approx(50**0.5))
