"""Checkpoints on a full disk, and a training that is crashed at every file that it writes."""

import subprocess
import sys

import pytest
import torch

from tests.support.snakemake_plans import ROOT
from tests.support.training_jobs import MODEL, full_disk, make_inputs
from workflow_scripts.errors import one_line_errors
from workflow_scripts.training.checkpoints import Checkpoint, load_checkpoint, save_checkpoint

OURS = "f" * 64


def test_a_full_disk_is_one_line_and_keeps_the_checkpoint(tmp_path):
    """A disk that is full is one line and keeps the checkpoint before."""
    small, large = ({"model": {"weight": torch.arange(size)}} for size in (10.0, 100_000.0))
    save_checkpoint(tmp_path, OURS, Checkpoint(4, small))
    with (
        pytest.raises(SystemExit, match=r"step00000008/model.safetensors: File too large\. Free some space"),
        one_line_errors(),
        full_disk(),
    ):
        save_checkpoint(tmp_path, OURS, Checkpoint(8, large))
    kept = load_checkpoint(tmp_path, OURS)
    assert kept.step == 4
    assert torch.equal(kept.groups["model"]["weight"], torch.arange(10.0))
    assert [path for path in tmp_path.rglob("*") if path.suffix == ".tmp"] == []


@pytest.mark.slow
def test_a_training_crashed_at_a_write_ends_in_the_same_bytes(tmp_path):
    """By another tool, ckpt-chaos, which kills and tears files."""
    make_inputs(tmp_path / "inputs")
    training = [sys.executable, "-m", "tests.support.step_checkpoints", str(tmp_path / "inputs"), "{out}"]
    options = f"--modes before,torn --max-points 2 --result-file {{out}}/{MODEL}/model.safetensors".split()
    crashed = subprocess.run(
        [sys.executable, "-m", "ckpt_chaos", "run", *options, "--work", str(tmp_path / "work"), "--", *training],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert crashed.returncode == 0, crashed.stdout
    assert crashed.stdout.count("PASS") > 2, crashed.stdout
