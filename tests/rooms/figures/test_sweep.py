from types import MappingProxyType

import pyarrow as pa
import pytest

from tests.rooms.figures.conftest import shown
from workflow_scripts.columns.tables import TABLE
from workflow_scripts.settings.grids import Experiment, runs_of

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


@pytest.fixture
def swept(stored):
    """Draws a grid; all cells have one score, but for those of a run or column in ``means``."""

    def draw(grid=GRID, plots=PLOTS[:1], means=MappingProxyType({}), **score):
        score = {"mean": 70.0, "sd": 0.1, "seeds": 2} | score
        rows = [
            {"run": run, "heading": name, **score, "mean": means.get(run, means.get(name, score["mean"]))}
            for run in runs_of(grid)
            for name in (column.heading for column in Experiment.parse(grid, "grid").columns)
        ]
        table = stored(pa.Table.from_pylist(rows, schema=TABLE), {"experiment": grid})
        return shown("sweep", {"plots": plots}, {"table": [table]})

    return draw


def rows_of(points):
    """Rows with None where a value is missing."""
    return points.astype(object).where(points.notna(), None).to_dict("records")


def test_every_swept_run_stands_once_for_each_setting_at_its_value(swept):
    one = "s2sent.x.c.blocks3-frequencies4"
    data = rows_of(swept(GRID, PLOTS, {one: 73.04}).points)
    assert len(data) == 2 * 12
    rows = {(row["run"], row["setting"]): row for row in data}
    assert len(rows) == len(data) and "base.x" not in {run for run, _ in rows}
    expected = {"value": "4", "place": 1, "series": "s2sent.x.c", "mean": 73.04, "heading": "STS-B"}
    assert rows[one, "method.frequencies"].items() >= expected.items()


def test_runs_that_say_where_they_lie_stand_in_order_beside_swept_ones_in_every_panel(swept):
    """Runs that differ in tag alone are one series; a baseline has no place; a panel may show another column."""
    block = {"method": "three_r", "encoder": "x", "corpus": "c"}
    runs = [
        {"method": "base", "encoder": "x"},
        block | {"at": {"method.k": 6}},
        block | {"sweep": {"method.k": [16, 2]}},
        block | {"tag": "none", "overrides": {"method": {"k": 3}}, "at": {"method.k": None}},
    ]
    plot = {"setting": "method.k", "label": "exemplars"}
    plots = [plot, plot | {"heading": "Other"}]
    drawn = swept(GRID | {"baseline": "base.x", "runs": runs}, plots, {"Other": 5.0})
    of_panel = [
        ("three_r.x.c", "6", 1, "three_r.x.c"),
        ("three_r.x.c", "None", 3, "three_r.x.c.none"),
        ("three_r.x.c", "16", 2, "three_r.x.c.k16"),
        ("three_r.x.c", "2", 0, "three_r.x.c.k2"),
        ("base.x", None, None, "base.x"),
    ]
    expected = {(*row, *cell) for row in of_panel for cell in (("STS-B", 70.0), ("Other", 5.0))}
    columns = ("series", "value", "place", "run", "heading", "mean")
    assert {tuple(row[name] for name in columns) for row in rows_of(drawn.points)} == expected
    for text in ("STS-B", "Other", "exemplars", "baseline"):
        assert text in drawn.said
