"""A checkpoint that a full disk cuts short leaves the one before."""

import resource
import signal

import pytest
import torch

from workflow_scripts.errors import one_line_errors
from workflow_scripts.training.checkpoints import Checkpoint, load_checkpoint, save_checkpoint

OURS = "f" * 64


@pytest.fixture
def full_disk():
    """No file may grow beyond 100 kB."""
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def test_a_disk_that_is_full_is_one_line_and_keeps_the_checkpoint_before(tmp_path, full_disk):
    small, large = ({"model": {"weight": torch.arange(size)}} for size in (10.0, 100_000.0))
    save_checkpoint(tmp_path, OURS, Checkpoint(4, small))
    with (
        pytest.raises(SystemExit, match=r"step00000008/model.safetensors: File too large\. Free some space"),
        one_line_errors(),
    ):
        save_checkpoint(tmp_path, OURS, Checkpoint(8, large))
    kept = load_checkpoint(tmp_path, OURS)
    assert kept.step == 4 and torch.equal(kept.groups["model"]["weight"], torch.arange(10.0))
    assert [path for path in tmp_path.rglob("*") if path.suffix == ".tmp"] == []
