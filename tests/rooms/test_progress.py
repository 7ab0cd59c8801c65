"""Logs are read as logs: few lines, each whole."""

import pytest

from workflow_scripts import progress
from workflow_scripts.progress import Progress


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes only when it is told to."""
    seconds = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: seconds[0])

    def wait(more):
        seconds[0] += more

    return wait


def test_a_log_of_fifteen_thousand_steps_is_eleven_lines(clock, capsys):
    with Progress(15_625, "train", "step") as shown:
        for step in range(15_625):
            clock(0.3)
            shown.update(note=f"loss {1 / (step + 1):.4f}")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10 and all(len(line) < 100 and "\r" not in line for line in lines)
    assert lines[0] == "train: 1,563 of 15,625 steps, 469 s, loss 0.0006"
    assert lines[-1] == "train: 15,625 of 15,625 steps, 4688 s, loss 0.0001"
