"""One job draws an experiment's figures, and takes over those that would be the same."""

import json
from pathlib import Path

import pytest

from tests.jobs import begin_here
from tests.rooms.reporting.conftest import drawing
from workflow_scripts.columns import TABLE
from workflow_scripts.provenance.artefacts import check_model_folder, read_record, read_table, write_table
from workflow_scripts.provenance.closure import meanings

SURFACE = {"longest": 3.0, "steps": 20}


@pytest.fixture
def drawn(finished, tmp_path, cached):
    """Draws two figures, one of which reads a table, and gives the number of each file on disk."""
    folder, table = tmp_path / "lab", tmp_path / "table.parquet"
    source = finished / "tables/lab.parquet"

    def draw(x="STS12", label="a stand-in", edited=""):
        if not table.exists() or read_record(table).labels != [label]:
            record = read_record(source).model_copy(update={"labels": [label], "inputs": {}, "outputs": []})
            write_table(table, read_table(source, TABLE), record)
        figures = {"scatter": ({"x": x, "y": "STS-B"}, {"table": [table]}), "modulus_surface": (SURFACE, {})}
        rule, call = drawing(folder, figures)
        if edited:  # a file that the job reads now and did not before
            file = f"workflow_scripts/figures/{edited}.py"
            code = json.loads(Path(call["files"]["inputs"]["code"]).read_text())
            code |= {file: meanings(f"figures.{edited}")[file]}
            call["files"]["inputs"]["code"] = str(tmp_path / "code.json")
            (tmp_path / "code.json").write_text(json.dumps(code))
        begin_here(rule, call)
        record = check_model_folder(folder)
        return {name: (folder / name).stat().st_ino for name in record.files}

    return draw


OTHER = {"modulus_surface.svg", "modulus_surface.parquet"}
ALL = OTHER | {"scatter.svg", "scatter.parquet"}


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"x": "STS16"}, OTHER),
        ({"label": "another"}, OTHER),
        ({"edited": "curves"}, ALL),  # the code of another figure
        ({"edited": "modulus_surface"}, ALL - OTHER),
    ],
)
def test_a_figure_of_the_same_data_and_settings_is_not_drawn_again(drawn, tmp_path, change, same):
    before, svg = drawn(), (tmp_path / "lab/scatter.svg").read_text()
    for text in ("Two scores of every run: A grid", "STS-B", "frozen_cls", "Substitution: a stand-in."):
        assert text in svg
    after = drawn(**change)
    assert before.keys() == after.keys()
    assert {name for name in before if before[name] == after[name]} == same
