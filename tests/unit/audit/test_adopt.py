"""What adopt takes away is kept, with the times that its job wrote; what cannot be kept stays."""

import ast
import json
from pathlib import Path

import pytest

from tests.unit.audit.conftest import STUDY
from workflow_scripts.audit import adopt as module
from workflow_scripts.audit.adopt import adopt
from workflow_scripts.audit.plan import _DECIDES_NOTHING, _jobs
from workflow_scripts.audit.stale import stale
from workflow_scripts.errors import DataError
from workflow_scripts.provenance import kept
from workflow_scripts.provenance.artefacts import check_model_folder, read_record
from workflow_scripts.provenance.closure import ROOT

RUN = Path(STUDY, "runs/plain/seed1")
SPEED = Path("benchmarks/study/train_encoder/plain/seed1.speed.parquet")
OPERATIONAL = "--checkpoint_minutes 0.5 --gpus 0 --min_rows 1 --service '{\"workers\": 2}'"


def training(temperature):
    """The command of one training, read back, as it is planned with this temperature."""
    record = read_record(RUN / "model")
    Path("code.json").write_text(json.dumps(record.meaning))
    settings = record.settings | {"method": record.settings["method"] | {"temperature": temperature}}
    line = (
        f"train_encoder --code code.json --packages '{json.dumps(record.packages)}' "
        f"--config '{json.dumps(settings)}' --run plain --seed 1 {OPERATIONAL} "
        f"--encoder {record.inputs['encoder'].path} --corpus {record.inputs['corpus'].path} "
        f"--record {RUN}/model/record.json --history {RUN}/history.parquet --speed {SPEED} >{RUN}.log"
    )
    return list(_jobs(Path(), "python", line))


@pytest.fixture
def planned(root, monkeypatch):
    """A function that has adopt plan one training with a temperature, and note nothing."""
    monkeypatch.setattr(module, "_note", lambda *_: None)
    SPEED.parent.mkdir(parents=True)
    SPEED.write_bytes(b"fast")
    return lambda temperature: monkeypatch.setattr(module, "plan", lambda *_: training(temperature))


def test_settings_that_decide_no_result_are_no_inputs(planned):
    found = stale(training(0.05))
    assert found.stale == {} and len(found.fresh) == 2


def test_the_names_of_such_settings_are_those_of_the_jobs():
    scripts = [ast.parse(path.read_text()) for path in (ROOT / "workflow_scripts/jobs").glob("*.py")]
    given = [node for script in scripts for node in ast.walk(script) if isinstance(node, ast.keyword)]
    named = {name for one in given if one.arg == "operational" for name in ast.literal_eval(one.value)}
    assert named and named | {"service"} == _DECIDES_NOTHING


def test_a_model_that_is_taken_away_is_kept_with_its_speed(planned):
    planned(0.1)
    key = read_record(RUN / "model").key
    done = adopt([])
    assert done.taken_away == [f"{RUN}/history.parquet", f"{RUN}/model"]
    assert not (RUN / "model").exists() and not (RUN / "history.parquet").exists()
    assert check_model_folder(RUN / ".kept/model/model").key == key
    assert kept.holds([RUN / "model", RUN / "history.parquet"], [SPEED], key)
    assert (RUN / ".kept/model" / SPEED.name).read_bytes() == b"fast"


@pytest.mark.parametrize("gone", [SPEED, RUN / "history.parquet"])
def test_what_cannot_be_kept_whole_is_not_taken_away(planned, gone):
    planned(0.1)
    gone.unlink()
    with pytest.raises(DataError, match=rf"{gone}, of the same job, is missing\. Nothing was taken away"):
        adopt([])
    assert check_model_folder(RUN / "model")


def test_files_of_two_runs_of_a_job_are_not_taken_away(planned, study):
    history = (RUN / "history.parquet").read_bytes()
    study.write_run("plain", 1, temperature=0.2)
    (RUN / "history.parquet").write_bytes(history)
    planned(0.1)
    with pytest.raises(DataError, match=r"is of another run\. Nothing was taken away"):
        adopt([])
    assert check_model_folder(RUN / "model")
