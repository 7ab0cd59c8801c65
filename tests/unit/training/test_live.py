"""What a training leaves for whoever watches it."""

import pyarrow as pa
import pytest

from workflow_scripts.columns.training import HISTORY
from workflow_scripts.errors import DataError
from workflow_scripts.training.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from workflow_scripts.training.live import FILE, read_live, write_live


def history(steps):
    rows = [
        {"step": n, "loss": 1 / n, "learning_rate": 0.1, "gradient_norm": 1.0, "dev_score": None}
        for n in range(1, steps + 1)
    ]
    return pa.Table.from_pylist(rows, schema=HISTORY)


def test_what_is_written_is_read(tmp_path):
    write_live(tmp_path / "model.checkpoints", history(3), 40, 0.25)
    found = read_live(tmp_path / "model.checkpoints")
    assert found.history.equals(history(3)) and found[1:] == (40, 0.25)
    write_live(tmp_path / "model.checkpoints", history(4), 40, 0.5)
    assert len(read_live(tmp_path / "model.checkpoints").history) == 4
    assert [file.name for file in (tmp_path / "model.checkpoints").iterdir()] == [FILE]


def test_a_training_that_has_said_nothing_is_none(tmp_path):
    assert read_live(tmp_path) is None


def test_a_damaged_file_is_named_with_what_to_do(tmp_path):
    write_live(tmp_path, history(3), 40, 0.25)
    (tmp_path / FILE).write_bytes((tmp_path / FILE).read_bytes()[:-3])
    with pytest.raises(DataError, match=rf"{tmp_path}/{FILE}: .* Delete it"):
        read_live(tmp_path)


def test_checkpoints_and_what_is_left_for_watching_do_not_disturb_each_other(tmp_path):
    write_live(tmp_path, history(3), 40, 0.25)
    for step in (1, 2):
        save_checkpoint(tmp_path, "mine", Checkpoint(step, {}))
    assert read_live(tmp_path) is not None
    assert load_checkpoint(tmp_path, "mine").step == 2
