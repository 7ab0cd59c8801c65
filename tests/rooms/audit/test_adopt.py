"""What adopt takes away is kept, with the times that its job wrote; what cannot be kept stays."""

from pathlib import Path

import pytest

from tests.rooms.audit.conftest import STUDY
from tests.rooms.audit.test_stale import planned_like
from workflow_scripts.audit import adopt as module
from workflow_scripts.audit.adopt import adopt
from workflow_scripts.errors import DataError
from workflow_scripts.planning.graph import Graph
from workflow_scripts.provenance import kept
from workflow_scripts.provenance.artefacts import check_model_folder, read_record

RUN = Path(STUDY, "runs/plain/seed1")
SPEED = Path("benchmarks/study/train_encoder/plain/seed1.speed.parquet")


def training(temperature):
    """The one training, as it is planned with this temperature."""
    record = read_record(RUN / "model")
    settings = record.settings | {"method": record.settings["method"] | {"temperature": temperature}}
    outputs = [*record.outputs, SPEED.as_posix()]
    job = planned_like(record)._replace(settings=settings, outputs=outputs, timings=[SPEED.as_posix()])
    return Graph([job])


@pytest.fixture
def planned(root, monkeypatch):
    """A function that has adopt plan one training with a temperature, and note nothing."""
    monkeypatch.setattr(module, "_note", lambda *_: None)
    SPEED.parent.mkdir(parents=True)
    SPEED.write_bytes(b"fast")
    return lambda temperature: monkeypatch.setattr(module, "planned", lambda *_: training(temperature))


def test_what_is_up_to_date_is_not_taken_away(planned):
    planned(0.05)
    assert adopt([]).taken_away == [] and (RUN / "model").exists()


def test_a_model_that_is_taken_away_is_kept_with_its_speed(planned):
    planned(0.1)
    key = read_record(RUN / "model").key
    done = adopt([])
    assert done.taken_away == [f"{RUN}/history.parquet", f"{RUN}/model/record.json"]
    assert not (RUN / "model").exists() and not (RUN / "history.parquet").exists()
    assert check_model_folder(RUN / ".kept/model/model").key == key
    assert kept.holds([RUN / "model", RUN / "history.parquet"], [SPEED], key)
    assert (RUN / ".kept/model" / SPEED.name).read_bytes() == b"fast"


def of_another_run(study, path):
    content = path.read_bytes()
    study.write_run("plain", 1, temperature=0.2)
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("gone", "change"),
    [
        (SPEED, lambda _, path: path.unlink()),
        (RUN / "history.parquet", lambda _, path: path.unlink()),
        (RUN / "history.parquet", of_another_run),
    ],
)
def test_what_cannot_be_kept_whole_is_not_taken_away(planned, study, gone, change):
    change(study, gone)
    planned(0.1)
    with pytest.raises(DataError, match=rf"cannot be kept: of .*{gone}.* Nothing was taken away"):
        adopt([])
    assert check_model_folder(RUN / "model")
