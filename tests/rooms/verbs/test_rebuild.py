"""What a rebuilt job is told: no cache, the study's stored answers, and local data; and which result is a fault."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.rooms.verbs.conftest import STUDY, flip_a_byte
from tests.support.training_jobs import NOWHERE
from workflow_scripts.verbs import rebuild
from workflow_scripts.verbs.plan import PlannedJob


@pytest.mark.parametrize("kept", [True, False])
def test_a_rebuilt_job_uses_stored_answers_and_no_cache(tmp_path, monkeypatch, kept):
    monkeypatch.chdir(tmp_path)
    if kept:
        Path("answers").mkdir()
        Path("answers/answers.sqlite").touch()
    given = NOWHERE | {"cache": "results/.cache", "data_root": "/data"}
    call = {"files": {"operational": {"gpu": 0, "workplace": given}}}
    told = []

    def run(_command, **options):
        told.append(json.loads(options["input"])["files"]["operational"])
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr("subprocess.run", run)
    rebuild._run(PlannedJob("translate_shard", {}, {}, [], [], call=json.dumps(call)), tmp_path / "again")
    answers = str(tmp_path / "answers/answers.sqlite") if kept else "answers/answers.sqlite"
    assert told == [{"gpu": 0, "workplace": given | {"cache": None, "answer_store": answers}}]


@pytest.mark.parametrize(
    ("contents", "record", "good"),
    [("equal", "identical", True), ("equal", "differs: code", True), ("differ", "identical", False)],
)
def test_only_other_contents_are_a_fault(monkeypatch, contents, record, good):
    row = {"path": "results/demo/a.parquet", "contents": contents, "record": record, "changes": []}
    monkeypatch.setattr(rebuild, "artefact_at", lambda path: (path, None))
    monkeypatch.setattr(rebuild, "given_call", lambda *_: None)
    monkeypatch.setattr(rebuild, "rebuild", lambda *_: [row])
    assert rebuild.answer(Path("results/demo/a.parquet"), [], []).good is good


@pytest.mark.parametrize("damaged", [False, True])
def test_a_file_changed_since_it_was_made_differs_when_rebuilt(root, damaged):
    model = Path(STUDY, "runs/plain/seed1/model")
    again = Path(shutil.copytree(model, model.with_name("again")))
    if damaged:
        flip_a_byte(model / "model.safetensors")
    row = rebuild._compared(
        model / "record.json", again / "record.json", PlannedJob("train_encoder", {}, {}, [], [], call="")
    )
    assert row["contents"] == ("differ" if damaged else "equal")
    assert row["record"] == ("its file was changed since it was written" if damaged else "identical")
