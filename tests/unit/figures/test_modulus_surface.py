import math
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.jobs import begin_here
from tests.unit.figures.conftest import request_of
from tests.unit.reporting.conftest import drawing, inside
from workflow_scripts.figures.modulus_surface import points
from workflow_scripts.provenance.artefacts import check_model_folder

REQUEST = request_of("modulus_surface", {"longest": 10, "steps": 101})  # steps of .1 and .02


def loss_at(k, t):
    rows = points(REQUEST).to_pylist()
    nearest = min(rows, key=lambda row: abs(row["k"] - k) + abs(row["t"] - t))
    assert nearest["k"] == pytest.approx(k) and nearest["t"] == pytest.approx(t)
    return nearest["loss"]


@pytest.mark.parametrize(
    ("k", "t", "expected"),
    [
        (1, 1, 0),
        (1, 0, 0.7071068),
        (1, -1, 1),
        (2, 1, 1 / 3),
        (3, 1, 0.5),
        (10, 1, 0.8181818),
        (2, 0, 0.7453560),
    ],
)
def test_the_surface_has_the_values_of_the_closed_form(k, t, expected):
    """O-40: L_TMC(k, t) = sqrt(1 + k^2 - 2kt) / (1 + k)."""
    assert loss_at(k, t) == pytest.approx(expected, abs=1e-6)


def test_the_surface_is_the_closed_form_everywhere_and_least_where_both_are_one():
    """JTCSE, Eq. 5."""
    rows = points(REQUEST).to_pylist()
    assert len(rows) == 101**2
    for row in rows:
        k, t = row["k"], row["t"]
        assert row["loss"] == pytest.approx(math.sqrt(max(0, 1 + k * k - 2 * k * t)) / (1 + k), abs=1e-7)
    least = min(rows, key=lambda row: row["loss"])
    assert (least["k"], least["t"]) == (pytest.approx(1), pytest.approx(1))


def test_the_job_draws_what_it_writes(tmp_path):
    with inside(tmp_path):
        begin_here(*drawing(Path("lab"), {"modulus_surface": ({"longest": 3.0, "steps": 40}, {})}))
        record = check_model_folder(Path("lab"))
    assert record.wildcards == {"experiment": "lab"}
    assert {*record.files} == {"modulus_surface.svg", "modulus_surface.parquet"}
    assert len(pq.read_table(tmp_path / "lab/modulus_surface.parquet")) == 1600
    svg = (tmp_path / "lab/modulus_surface.svg").read_text()
    for text in ("Modulus constraint: A grid", "k, ratio of the moduli", "t, cosine", ">0.5<"):
        assert text in svg
