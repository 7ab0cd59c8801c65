"""What a person who mistypes an export is told; tests of models look at what is exported."""

from pathlib import Path

import pytest

from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import RECORD_FILE
from workflow_scripts.tools import export_model


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A finished run, as far as an export looks at it."""
    (tmp_path / "seed1/model").mkdir(parents=True)
    for name in ("config.json", RECORD_FILE):
        (tmp_path / "seed1/model" / name).write_text("{}")

    class Checked:
        files = ("config.json",)

    monkeypatch.setattr(export_model, "check_model_folder", lambda _folder: Checked)
    monkeypatch.setattr(export_model, "readme", lambda _folder: "card")
    return tmp_path / "seed1"


@pytest.mark.parametrize("folder", [".", "seed1/model", "nosuch"])
def test_a_folder_that_is_none_of_a_run_and_seed_is_one_line(run, folder):
    with pytest.raises(DataError, match=r"no model/record.json.*results/<study>/runs/<run>/seed<seed>"):
        export_model.export_model(run.parent / folder, run.parent / "shared")


def test_a_place_behind_a_file_is_one_line(run):
    (run.parent / "file").touch()
    with pytest.raises(DataError, match="is a file, not a folder"):
        export_model.export_model(run, run.parent / "file/shared")


def test_a_copy_that_is_cut_off_leaves_nothing(run, monkeypatch):
    copied = []

    def cut_off(source, target):
        if copied:
            raise KeyboardInterrupt
        copied.append(target.write_bytes(source.read_bytes()))

    monkeypatch.setattr(export_model.shutil, "copyfile", cut_off)
    with pytest.raises(KeyboardInterrupt):
        export_model.export_model(run, run.parent / "shared")
    assert copied and {path.name for path in run.parent.iterdir()} == {"seed1"}


def test_a_copy_has_model_record_and_card(run):
    export_model.export_model(run, run.parent / "a b/shared")
    assert {path.name for path in Path(run.parent, "a b/shared").iterdir()} == {
        "config.json", RECORD_FILE, "README.md",
    }  # fmt: skip
    assert [path.name for path in Path(run.parent, "a b").iterdir()] == ["shared"]
