"""What a rebuilt job is told: no cache, the study's stored answers, and local data; and which result is a fault."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

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
