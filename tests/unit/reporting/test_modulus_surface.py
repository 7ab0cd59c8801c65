import math

import pytest

from workflow_scripts.artefacts import check_seal, read_record, read_table
from workflow_scripts.reporting.experiment import ModulusSurface
from workflow_scripts.reporting.modulus_surface import surface
from workflow_scripts.schemas import MODULUS_SURFACE

from .conftest import command, inside, run_job

CONFIG = ModulusSurface(longest=10, steps=101)  # steps of .1 and .02


def loss_at(k, t):
    rows = surface(CONFIG).to_pylist()
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
    rows = surface(CONFIG).to_pylist()
    assert len(rows) == 101**2
    for row in rows:
        k, t = row["k"], row["t"]
        assert row["loss"] == pytest.approx(math.sqrt(max(0, 1 + k * k - 2 * k * t)) / (1 + k), abs=1e-7)
    least = min(rows, key=lambda row: row["loss"])
    assert (least["k"], least["t"]) == (pytest.approx(1), pytest.approx(1))


def test_the_job_draws_what_it_writes(tmp_path):
    settings = {
        "title": "A grid",
        "figure": {"width_inches": 7.3},
        "modulus_surface": {"longest": 3.0, "steps": 40},
    }
    with inside(tmp_path):
        files = {"figure": tmp_path / "modulus_surface.svg", "data": tmp_path / "modulus_surface.parquet"}
        run_job(*command("draw_modulus_surface", settings, experiment="lab", **files))
    svg = files["figure"].read_text()
    check_seal(files["figure"])
    assert read_record(files["figure"]).rule == "draw_modulus_surface"
    assert len(read_table(files["data"], MODULUS_SURFACE)) == 1600
    for text in ("Modulus constraint: A grid", "k, ratio of the moduli", "t, cosine", ">0.5<"):
        assert text in svg
