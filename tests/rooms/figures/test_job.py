"""One job draws an experiment's figures into a folder with a record."""

from tests.rooms.reporting.conftest import drawing
from tests.support.training_jobs import begin_here
from workflow_scripts.columns import TABLE
from workflow_scripts.provenance.artefacts import check_model_folder, read_record, read_table, write_table
from workflow_scripts.provenance.record import merged_labels


def test_a_job_draws_every_figure_with_points_and_labels(finished, tmp_path):
    """A job draws every figure with its points and the labels of what it read."""
    source, table = finished / "tables/lab.parquet", tmp_path / "table.parquet"
    record = read_record(source).model_copy(
        update={"labels": merged_labels(["a stand-in"]), "inputs": {}, "outputs": []}
    )
    write_table(table, read_table(source, TABLE), record)
    surface = {"longest": 3.0, "steps": 20}
    figures = {
        "scatter": ({"x": "STS12", "y": "STS-B"}, {"table": [table]}),
        "modulus_surface": (surface, {}),
    }
    begin_here(*drawing(tmp_path / "lab", figures))
    forms = ("svg", "wide.svg", "narrow.svg", "parquet")
    drawn = [f"{name}.{form}" for name in figures for form in forms]
    assert {*check_model_folder(tmp_path / "lab").files} == {*drawn, "texts.json"}
    svg = (tmp_path / "lab/scatter.svg").read_text()
    for text in ("Two scores of every run: A grid", "STS-B", "frozen_cls", "Substitution: a stand-in."):
        assert text in svg
