"""A model as a folder to share."""

from pathlib import Path

import pytest

from tests.rooms.audit.conftest import STUDY
from tests.verbs import printed
from workflow_scripts.audit import export
from workflow_scripts.errors import DataError

RUN = Path(STUDY, "runs/plain/seed1")


def test_a_copy_of_a_model_has_model_record_and_card(root, monkeypatch):
    monkeypatch.setattr(export, "readme", lambda _folder: "card")
    code, said = printed("export", RUN, "--to", "a b/shared")
    assert code == 0 and "hf upload <name> 'a b/shared'" in said
    found = {path.relative_to("a b/shared").as_posix() for path in Path("a b/shared").rglob("*.*")}
    assert found == {"model.safetensors", "1_Pooling/config.json", "record.json", "README.md"}
    assert [path.name for path in Path("a b").iterdir()] == ["shared"]


@pytest.mark.parametrize(
    ("run", "complaint"),
    [(RUN, "results: exists"), (STUDY, f"{STUDY}: no finished model")],
)
def test_what_cannot_be_exported_is_one_line(root, run, complaint):
    with pytest.raises(DataError, match=complaint):
        printed("export", run, "--to", "results")
