import json
import sys
from pathlib import Path

import pytest

from tests.unit.audit.conftest import STUDY
from workflow_scripts.artefacts import read_seal
from workflow_scripts.audit.__main__ import main
from workflow_scripts.audit.lock import lock
from workflow_scripts.errors import DataError


def test_a_lock_names_every_artefact_and_every_source(study):
    found = lock(Path(), Path(STUDY))
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
        lock(Path(), Path(STUDY))


def test_equal_studies_give_equal_locks(study, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["audit", "lock", STUDY, "--to", str(tmp_path / "a.json")])
    assert main() == 0
    monkeypatch.setattr(sys, "argv", ["audit", "lock", STUDY, "--to", str(tmp_path / "b.json")])
    assert main() == 0
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert json.loads((tmp_path / "a.json").read_text())["artefacts"]
