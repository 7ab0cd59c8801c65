"""Gains: a study's differences on the claims of papers, next to the printed ones."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.rooms.figures.conftest import FOOTNOTE, shown
from tests.support.snakemake_plans import expanded
from workflow_scripts.columns import CLAIMS, TABLE
from workflow_scripts.figures.base import NARROW_INCHES
from workflow_scripts.figures.drawing import figure_style
from workflow_scripts.figures.gains import axis_ends, claim_points, draw_gains
from workflow_scripts.provenance.artefacts import job_record, writing_model_folder

SPEARMAN = {"suite": "s", "aggregation": "all", "metric": "spearman", "scale": 100, "digits": 2}
SPACE = SPEARMAN | {"metric": "alignment", "scale": 1}
GRID = {
    "title": "-", "source": "-", "seeds": [1], "baseline": None, "suites": {"sts": ["s"]},
    "runs": [{"method": ["ours", "theirs"], "encoder": "x"}],
    "columns": [
        {"heading": "A", "task": "a", **SPEARMAN},
        {"heading": "B", "task": "b", **SPEARMAN},
        {"heading": "mean", "mean_of": ["A", "B"], "digits": 2},
        {"heading": "A over B", "ratio_of": ["A", "B"], "digits": 2},
        {"heading": "near", "task": "a", **SPACE},
    ],
}  # fmt: skip


def claim(name, verdict, difference=None, interval=(None, None), printed=(None, None), **more):
    """A row of the table of claims."""
    cells = {"paper": "jtcse", "place": "Table 1", "table": "toy", "run": "ours.x", "heading": "mean"}
    numbers = {"difference": difference, "low": interval[0], "high": interval[1]}
    printed = dict(zip(("printed_ours", "printed_theirs"), printed, strict=True))
    said = {"claim": name, "says": f"The claim {name}.", "verdict": verdict}
    return cells | said | numbers | printed | more


ROWS = [
    claim("gain", "supported", 2.28, (1.57, 3.0), (79.5, 76.25)),
    claim("loss", "contradicted", -1.29, (-1.57, -1.01), (80, 79.5), paper="three_r"),
    claim("open", "undecided", 0.5, printed=(48.5, None)),
    claim("closer", "undecided", 0.02, (0.01, 0.03), heading="near"),
    claim("elsewhere", "not run", table=None, run=None, heading=None),
]


@pytest.fixture
def draw(stored):
    """Draws a table of claims about the cells of one grid."""

    def drawn(rows):
        cells = [
            {"run": run, "heading": column["heading"], "metric": "other", "scale": None}
            for run in ("ours.x", "theirs.x")
            for column in expanded(GRID)["columns"]
        ]
        table = stored(
            pa.Table.from_pylist(cells, schema=TABLE), {"experiment": expanded(GRID)}, "toy.parquet"
        )
        claims = pa.Table.from_pylist(rows, schema=CLAIMS)
        verdicts = stored(claims, {"significance": {"alpha": 0.05}}, "claims.parquet")
        return shown("gains", {}, {"verdicts": [verdicts], "tables": [table]})

    return drawn


def test_points_are_the_numbers_of_the_table(draw):
    points = draw(ROWS).data
    assert points["claim"].tolist() == ["gain", "loss", "open", "closer"]
    assert points["unit"].tolist() == [*["Spearman times 100"] * 3, "alignment"]
    assert points["verdict"].tolist() == ["supported", "contradicted", "undecided", "undecided"]
    numbers = [
        [2.28, 1.57, 3.0, 3.25],
        [-1.29, -1.57, -1.01, 0.5],
        [0.5, np.nan, np.nan, np.nan],
        [0.02, 0.01, 0.03, np.nan],
    ]
    np.testing.assert_array_equal(points[["difference", "low", "high", "printed"]], numbers)


def marks(axes):
    """The horizontal places of what is drawn in a panel, by mark; intervals have none. Lines at zero are left out."""
    drawn = [(str(line.get_marker()), [*map(float, line.get_xdata())]) for line in axes.lines]
    drawn = [(mark, places) for mark, places in drawn if places != [0, 0]]
    return {mark: sorted(place for one, place in drawn if one == mark) for mark, _ in drawn}


def test_a_panel_has_points_intervals_and_printed_gains(draw):
    picture = draw(ROWS).picture
    scores, space = picture.axes
    assert marks(scores) == {
        "o": [[0.5], [2.28]],
        "s": [[-1.29]],
        "D": [[0.5], [3.25]],
        "None": [[-1.57, -1.01], [1.57, 3.0]],
    }
    assert marks(space) == {"o": [[0.02]], "None": [[0.01, 0.03]]}
    assert [axes.get_xlabel() for axes in picture.axes] == [
        "difference in Spearman times 100",
        "difference in alignment",
    ]


def test_texts_name_claims_papers_verdicts_and_what_is_missing(draw):
    found = draw(ROWS)
    assert {"JTCSE", "3R", "The claim gain", "supported", "contradicted", "undecided", FOOTNOTE} <= {
        *found.texts
    }
    for note in (
        "A bar is the 95% interval of its claim.",
        "Without an interval, because too little was repeated for one: 1 of 4.",
        "Without a diamond, because the paper does not print both numbers: 2 of 4.",
        "1 claims of the papers are not compared by this study.",
    ):
        assert note in found.said


def test_a_claim_far_from_the_others_is_an_arrow_with_its_value(draw):
    rows = [claim(str(number), "supported", number / 10, (0.0, 1.0), (2, 1)) for number in range(8)]
    far = claim("far", "contradicted", -41.67, (-46.49, -36.86), (100, 0))
    found = draw([*rows, far])
    low, high = found.picture.axes[0].get_xlim()
    assert -5 < low < 0 < 1 < high < 5
    drawn = marks(found.picture.axes[0])
    assert drawn["<"] == [[low]]
    assert drawn[">"] == [[high]]
    assert {"\N{MINUS SIGN}41.67", "printed +100.00"} <= {*found.texts}
    assert found.data["difference"].tolist()[-1] == -41.67


def test_the_value_of_a_far_point_covers_no_other_point(draw):
    rows = [claim(str(number), "supported", number / 10, (0.0, 1.0), (2, 1)) for number in range(8)]
    picture = draw([*rows, claim("far", "undecided", -41.67, printed=(0, 1.2))]).picture
    (axes,) = picture.axes
    (text,) = [text for text in axes.texts if text.get_text() == "\N{MINUS SIGN}41.67"]
    points = {
        str(line.get_marker()): line.get_xydata() for line in axes.lines
    }  # the last row has each mark once
    near, _ = axes.transData.transform(points["D"])[0]
    half_a_diamond = 4.5 / 2 / 72 * picture.dpi
    assert text.get_window_extent().x1 < near - half_a_diamond


def test_an_axis_has_all_claims_if_none_is_far(draw):
    for values in ([-1.0, 2.0, 5.0], [0.0, 0.0, 0.0, 3.0], [-3.0]):
        points = draw([claim(str(place), "undecided", value) for place, value in enumerate(values)]).data
        low, high = axis_ends(points)
        assert low < min(0, *values, 0)
        assert high > max(0, *values, 0)


def test_a_unit_is_that_of_the_column_or_else_its_heading(draw):
    rows = [claim(name, "undecided", 1.0, heading=name) for name in ("A", "mean", "A over B", "near")]
    units = ["Spearman times 100", "Spearman times 100", "A over B", "alignment"]
    assert draw(rows).data["unit"].tolist() == units


def test_cells_of_the_extraction_study_have_their_own_unit(stored, tmp_path):
    """Its tables have no grid; some are beside figures, and are found by the record of these."""
    cells = [{"run": "avg.", "heading": "RE", "metric": "isoscore", "scale": 1.0}]
    cells += [{"run": "avg.", "heading": "T4", "metric": "accuracy", "scale": 100.0}]
    table = stored(pa.Table.from_pylist(cells, schema=TABLE), name="figure1.parquet")
    record = tmp_path / "drawn/record.json"
    made = job_record("draw_figures", settings={}, inputs={}, outputs=[record.parent], wildcards={})
    with writing_model_folder(record.parent, made) as folder:
        pq.write_table(pa.Table.from_pylist(cells, schema=TABLE), folder / "figure1.parquet")
        pq.write_table(pa.table({"x": [1]}), folder / "lines.parquet")
    rows = [claim(one, "undecided", 1.0, table="figure1", run="avg.", heading=one) for one in ("RE", "T4")]
    verdicts = stored(
        pa.Table.from_pylist(rows, schema=CLAIMS), {"significance": {"alpha": 0.1}}, "claims.parquet"
    )
    for read in ({"tables": [table]}, {"figures": [record]}):
        found = shown("gains", {}, {"verdicts": [verdicts], **read})
        assert found.data["unit"].tolist() == ["IsoScore", "accuracy times 100"]
        assert "A bar is the 90% interval" in found.said


def test_without_a_compared_claim_the_figure_says_so(draw):
    found = draw(ROWS[-1:])
    assert found.data.empty
    assert "No claim is compared, so there is no difference to draw." in found.texts
    assert "1 claims of the papers are not compared by this study." in found.texts


def test_a_narrow_figure_has_the_same_marks_below_the_texts():
    points = claim_points(ROWS[:2], {("toy", "ours.x", "mean"): "Spearman times 100"})
    with figure_style(NARROW_INCHES):
        (axes,) = draw_gains(points).axes
        assert marks(axes) == {
            "o": [[2.28]], "s": [[-1.29]], "D": [[0.5], [3.25]], "None": [[-1.57, -1.01], [1.57, 3.0]]
        }  # fmt: skip
        heights = {text.get_text(): text.xy[1] for text in axes.texts}
        (at,) = {line.get_ydata()[0] for line in axes.lines if line.get_marker() == "o"}
        assert at > heights["The claim gain"]
        for line in axes.lines:
            ends = line.get_ydata()
            assert not [text for text, height in heights.items() if min(ends) <= height <= max(ends)]
