"""Figures of the extraction study, made of scores that are known."""

import numpy as np
import pyarrow as pa
import pytest

from tests.rooms.figures.conftest import FOOTNOTE, shadow_of, shown
from tests.support.toy_extraction import NAMES, VARIANTS, row, rows
from workflow_scripts.columns import EXTRACTION, TABLE

FIGURES = {
    "variant_scatter": {
        "x": "IsoScore", "y": "STS", "y_scale": "linear", "note": None, "models": ["BERT", "RE"], "variants": VARIANTS, "correlation": True,
    },
    "layer_lines": {"measures": ["STS"], "series": [{"panel": "plain", "representation": "plain", "weighting": "avg"}, {"panel": "plain", "representation": "random", "weighting": "avg"}], "sums": ["1+last"]},
    "mixing_map": {"measures": ["STS"], "split": True, "representation": "plain", "weighting": "avg", "mixing_weights": [0, 0.5]},
}  # fmt: skip
COUNTS = {"variant_scatter": 2 * 8, "layer_lines": 5 + 5, "mixing_map": 4 * 2 * 2 + 2}


@pytest.fixture
def made(stored):
    """Draws a figure of scores, with other settings or names."""

    def draw(kind, scores=None, names=NAMES, **changes):
        table = pa.Table.from_pylist(list(rows() if scores is None else scores), schema=EXTRACTION)
        file = stored(table, name="extraction/scores/sts/plain/sts12.parquet", representation="plain")
        block = {"kind": kind, "title": "T", "below": "x"} | FIGURES[kind] | changes
        return shown(kind, block, {"scores": [file]}, names=names.model_dump())

    return draw


@pytest.mark.parametrize("kind", FIGURES)
def test_a_figure_shows_what_was_scored_and_says_its_unit(made, kind):
    drawn = made(kind)
    assert len(drawn.data) == COUNTS[kind]
    assert drawn.said.index("orrelations and accuracies are times 100.") < drawn.said.index(FOOTNOTE)


def test_a_scatter_is_kept_as_the_cells_of_a_table(made):
    """Claims are judged by them."""
    points = pa.Table.from_pandas(made("variant_scatter").data, preserve_index=False)
    assert points.schema.remove_metadata() == TABLE


def test_a_scatter_has_its_axes_and_pearsons_r_in_the_legend(made):
    """Variants of one model: idf adds 0.1 to both scores, a z-score 0.05; one variant has a lower score."""
    lower = {("idf_task", "zscore"): 0.2}
    given = [
        score | {"value": lower.get((score["weighting"], score["postprocess"]), score["value"])}
        if score["kind"] == "sts"
        else score
        for score in rows()
    ]
    drawn = made("variant_scatter", given, models=["BERT"])
    (axes,) = drawn.picture.axes
    isotropy, sts = (0.1, 0.15, 0.2, 0.25), (60, 65, 70, 20)
    np.testing.assert_allclose(
        sorted(axes.collections[0].get_offsets().tolist()), list(zip(isotropy, sts, strict=True))
    )
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("IsoScore", "STS")
    assert f"(r = {np.corrcoef(isotropy, sts)[0, 1]:.2f})" in drawn.said


def test_a_map_shows_the_mean_over_draws(made):
    """A map shows the mean over draws whether tasks are split or not."""
    draws = [
        row("random", task, value, draw=draw, layers="static")
        for task, value in (("sts12", 0.2), ("sts13", 0.4))
        for draw, value in ((1, value), (2, value + 0.1))
    ]
    for split, expected in ((True, [25, 45]), (False, [35])):
        points = made("mixing_map", draws, representation="random", split=split).data
        assert points["y"].tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("kind", "gap", "rest"),
    [
        ("mixing_map", "sts13", "sts12"),
        ("layer_lines", "STS | plain, plain, avg.", "No layer was scored."),
    ],
)
def test_a_footnote_names_each_gap_with_its_reason(made, kind, gap, rest):
    nothing = dict.fromkeys(("layers", "weighting", "postprocess", "metric", "aggregation"), "")
    given = [row("plain", "sts12", 0.5, layers=layer, mixing_weight=w) for layer in "01" for w in (0.0, 0.5)]
    given.append(row("plain", "sts13", None, note="no source", **nothing))
    said = made(kind, given).said
    assert f"Not drawn, because scores are missing: {gap} (sts13: no source)." in said
    assert rest in said


def test_the_shadow_is_the_standard_deviation_of_a_sample(made):
    """By hand: 50 and 60 have the mean 55 and, with n - 1, the standard deviation 7.07."""
    given = [row("plain", task, value, layers="0") for task, value in (("sts12", 0.5), ("sts13", 0.6))]
    (point,) = made("layer_lines", given).data.to_dict("records")
    assert (point["y"], point["spread"]) == (pytest.approx(55), pytest.approx(50**0.5))


def test_the_shadow_reaches_one_standard_deviation_to_each_side(made):
    scores = {("sts12", "0"): 0.5, ("sts13", "0"): 0.6, ("sts12", "1"): 0.3, ("sts13", "1"): 0.3}
    given = [row("plain", task, value, layers=layer) for (task, layer), value in scores.items()]
    (panel,) = made("layer_lines", given).picture.axes
    deviation = 50**0.5
    assert [*shadow_of(panel).values()] == [
        pytest.approx(ends) for ends in ((55 - deviation, 55 + deviation), (30, 30))
    ]


def test_the_cross_of_a_map_is_at_its_best_value(made):
    scores = {("0", 0.0): 0.1, ("0", 0.5): 0.4, ("1", 0.0): 0.3, ("1", 0.5): 0.7}
    given = [
        row("plain", "sts12", value, layers=layer, mixing_weight=share)
        for (layer, share), value in scores.items()
    ]
    drawn = made("mixing_map", given, split=False).picture
    (axes,) = [axes for axes in drawn.axes if axes.lines]
    ((across, down),) = axes.lines[0].get_xydata().tolist()
    columns = {tick.get_position()[0]: tick.get_text() for tick in axes.get_xticklabels()}
    shares = {tick.get_position()[1]: tick.get_text() for tick in axes.get_yticklabels()}
    assert (columns[across], shares[down]) == ("1", "0.5")


def test_the_input_embeddings_are_layer_minus_1(made):
    """In lines and maps; vectors that have no layers keep their value at every one."""
    values = {"static": 0.1, "0": 0.2, "1": 0.3, "1+last": 0.4}
    given = [row("plain", "sts12", value, layers=layer) for layer, value in values.items()]
    series = [{"panel": "p", "representation": name, "weighting": "avg"} for name in ("plain", "random")]
    given += [row("random", "sts12", 0.5, layers="static")]
    names = NAMES.model_copy(update={"representations": {"plain": "plain", "random": "random embeddings"}})
    points = made("layer_lines", given, names, series=series, sums=["1+last"]).data
    plain = points[points["series"].str.startswith("plain")]
    assert plain["point"].tolist() == ["-1", "0", "1", "1+last"]
    assert plain["y"].tolist() == pytest.approx([10, 20, 30, 40])
    assert points["y"][points["series"].str.startswith("random")].tolist() == [50, 50, 50, 50]
    mapped = made("mixing_map", [row("plain", "sts12", 0.1, layers="static"), *given[1:3]]).data
    assert mapped.sort_values("x")["series"].unique().tolist() == ["-1", "0", "1"]
