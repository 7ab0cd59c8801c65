"""Two processes on the CPU (gloo), started as a cluster job starts them, beside one."""

import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file

from tests import tiny
from tests.planning import ROOT
from workflow_scripts.errors import ConfigError
from workflow_scripts.training import ranks


def trained(folder, processes, *, dropout=0.0, stop=0):
    """What a training by so many processes leaves; None where it was cut off."""
    if not (folder / "encoder").exists():
        tiny.write_model(folder / "encoder", "bert")
    worker = ["tests.unit.training.rank_worker", str(folder), str(dropout), str(stop)]
    torchrun = ["torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    command = [sys.executable, "-m", *([] if processes == 1 else [*torchrun, "-m"]), *worker]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert bool(done.returncode) == bool(stop), done.stderr[-2000:]
    return None if stop else load_file(folder / "found.safetensors")


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_two_processes_have_the_loss_and_the_gradients_of_the_joint_batch(tmp_path, dropout):
    """What is dropped does not depend on who has a sentence."""
    one, two = (trained(tmp_path / name, count, dropout=dropout) for name, count in (("one", 1), ("two", 2)))
    gradients = [name for name in one if name.startswith("gradient ")]
    assert len(gradients) > 20
    assert max(one[name].abs().max() for name in gradients) > 1e-2  # else agreement would say little
    for name in ("loss", *gradients):
        torch.testing.assert_close(two[name], one[name], rtol=1e-6, atol=1e-6, msg=name)
    # AdamW divides by the gradient's size, so rounding grows from step to step.
    torch.testing.assert_close(two["losses"], one["losses"], rtol=1e-3, atol=1e-3)


def test_a_training_by_two_processes_that_was_cut_off_ends_in_the_same_bytes(tmp_path):
    whole = trained(tmp_path / "whole", 2, dropout=0.1)
    trained(tmp_path / "cut", 2, dropout=0.1, stop=4)  # checkpoints lie at steps 2 and 4
    resumed = trained(tmp_path / "cut", 2, dropout=0.1)
    assert whole["losses"].shape == (6,)
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_alone_nothing_is_gathered_shared_or_averaged():
    vectors = torch.randn(4, 3)
    assert ranks.gathered(vectors) is vectors
    assert (ranks.world(), ranks.rank()) == (1, 0)
    assert list(range(8))[ranks.share(8)] == list(range(8))
    assert list(ranks.any_rank(True, False)) == [True, False]


def test_a_batch_that_cannot_be_dealt_out_evenly_is_refused(monkeypatch):
    monkeypatch.setattr(ranks, "world", lambda: 3)
    with pytest.raises(ConfigError, match=r"training\.batch_size: 8 rows for 3"):
        ranks.share(8)
