"""Logs are read as logs: few lines, each whole; a terminal has a bar."""

import sys

import pytest
import tqdm.std

from workflow_scripts.progress import progress


def shown(monkeypatch, capsys, steps, *, seconds_each=0.3, **options):
    """What a training of some steps prints."""
    seconds = [1e9]
    monkeypatch.setattr(tqdm.std, "time", lambda: seconds[0])
    with progress(steps, "train", "step", **options) as bar:
        for step in range(steps):
            seconds[0] += seconds_each
            bar.set_postfix_str(f"loss {1 / (step + 1):.4f}", refresh=False)
            bar.update()
    return capsys.readouterr().err


def test_a_log_of_fifteen_thousand_steps_has_a_line_a_minute(monkeypatch, capsys):
    lines = shown(monkeypatch, capsys, 15_625).splitlines()
    assert len(lines) == 79
    assert all(len(line) < 100 and "\r" not in line for line in lines)
    assert lines[1] == "train: 201 of 15,625 steps, 60 s, loss 0.0050"
    assert lines[-1] == "train: 15,625 of 15,625 steps, 4687 s, loss 0.0001"


@pytest.mark.parametrize("seconds", [1, 40, 61])
def test_a_state_is_one_line_of_a_log(monkeypatch, capsys, seconds):
    """Also the last, whether it was due or not."""
    lines = shown(monkeypatch, capsys, 4, seconds_each=seconds).splitlines()
    assert [*dict.fromkeys(lines)] == lines
    assert lines[-1] == f"train: 4 of 4 steps, {4 * seconds} s, loss 0.2500"


def test_short_work_says_nothing(monkeypatch, capsys):
    assert shown(monkeypatch, capsys, 10, delay=5) == ""


def test_a_terminal_has_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert "100%" in shown(monkeypatch, capsys, 10).split("\r")[-1]
