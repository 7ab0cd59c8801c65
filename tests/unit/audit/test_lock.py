import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.unit.audit.conftest import STUDY
from workflow_scripts.artefacts import read_record, read_seal, write_table
from workflow_scripts.audit.__main__ import main
from workflow_scripts.audit.lock import lock
from workflow_scripts.errors import DataError


def test_a_lock_names_every_artefact_and_every_source(study):
    found = lock(Path(), [Path(STUDY)])
    tables = {path.as_posix() for path in Path(STUDY).rglob("*.parquet")}
    assert tables
    assert tables < set(found["artefacts"])
    assert all(found["artefacts"][name] == read_seal(Path(name)) for name in tables)
    assert any(path.startswith("hub:") for path in found["sources"])


def test_a_damaged_artefact_is_not_locked(study):
    path = next(Path(STUDY).rglob("*.parquet"))
    content = bytearray(path.read_bytes())
    content[10] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=path.name):
        lock(Path(), [Path(STUDY)])


def test_equal_studies_give_equal_locks(study, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["audit", "lock", STUDY, "--to", str(tmp_path / "a.json")])
    assert main() == 0
    monkeypatch.setattr(sys, "argv", ["audit", "lock", STUDY, "--to", str(tmp_path / "b.json")])
    assert main() == 0
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert json.loads((tmp_path / "a.json").read_text())["artefacts"]


def test_contents_are_the_same_at_another_commit_and_seals_are_not(root, monkeypatch):
    before = lock(root, [Path(STUDY)])
    path = Path(STUDY, "tables/main.parquet")
    record = read_record(path)
    write_table(path, pq.read_table(path), record.model_copy(update={"commit": "0" * 40}))
    after = lock(root, [Path(STUDY)])
    assert before["contents"] == after["contents"]
    changed = {name for name in before["artefacts"] if before["artefacts"][name] != after["artefacts"][name]}
    assert changed == {path.as_posix()}
    assert after["contents"].keys() == after["artefacts"].keys()


def test_the_lock_lies_below_results_unless_asked_otherwise(root, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["audit", "lock"])
    assert main() == 0
    text = Path("results/provenance.lock.json").read_text()
    assert json.loads(text)["artefacts"]
    assert text == json.dumps(json.loads(text), indent=1, sort_keys=True) + "\n"
    assert "15 artefacts" in capsys.readouterr().out
