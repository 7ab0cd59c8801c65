import shutil

import pytest
import torch

from workflow_scripts.training.checkpoints import (
    MANIFEST,
    Checkpoint,
    in_host_memory,
    load_checkpoint,
    save_checkpoint,
)

OURS = "f" * 64


def checkpoint(step):
    draw = torch.Generator().manual_seed(step)
    groups = {
        "model": {"weight": torch.randn(3, 4, generator=draw), "count": torch.tensor(step)},
        "optimiser": {
            "weight/exp_avg": torch.randn(3, 4, generator=draw),
            "weight/step": torch.tensor(float(step)),
        },
        "state": {
            "rows": torch.randn(step, 5, generator=draw, dtype=torch.float64),
            "random": torch.get_rng_state(),
        },
        "best": {"weight": torch.randn(3, 4, generator=draw)},
    }
    return Checkpoint(step, groups)


def check_equal(one, two):
    """The same step and tensors, to the bit and of the same type."""
    assert one.step == two.step
    torch.testing.assert_close(one.groups, two.groups, rtol=0, atol=0)


@pytest.fixture
def folder(tmp_path):
    """Two complete checkpoints, as after a kill between writing one and removing the other."""
    save_checkpoint(tmp_path / "old", OURS, checkpoint(4))
    save_checkpoint(tmp_path / "checkpoints", OURS, checkpoint(8))
    shutil.move(tmp_path / "old/step00000004", tmp_path / "checkpoints")
    return tmp_path / "checkpoints"


def test_what_was_saved_is_loaded_to_the_bit(tmp_path):
    """What was saved is loaded to the bit and of the same type."""
    save_checkpoint(tmp_path, OURS, checkpoint(4))
    check_equal(load_checkpoint(tmp_path, OURS), checkpoint(4))


def test_tensors_that_share_memory_are_saved_whole(tmp_path):
    weight = torch.arange(6.0)
    shared = {"model": {"tied": weight, "part": weight[2:4], "turned": weight.view(2, 3).T}}
    copied = {name: in_host_memory(tensors) for name, tensors in shared.items()}
    save_checkpoint(tmp_path, OURS, Checkpoint(1, copied))
    check_equal(load_checkpoint(tmp_path, OURS), Checkpoint(1, shared))


def test_a_checkpoint_of_another_training_is_passed_over(folder):
    assert load_checkpoint(folder, "e" * 64) is None
    assert load_checkpoint(folder, OURS).step == 8


def test_a_new_checkpoint_removes_the_others_and_nothing_else(folder):
    (folder / "notes.txt").write_text("mine")
    (folder / "step-by-step.txt").write_text("mine too")
    save_checkpoint(folder, OURS, checkpoint(12))
    assert sorted(path.name for path in folder.iterdir()) == ["notes.txt", "step-by-step.txt", "step00000012"]


def test_a_torn_checkpoint_of_the_same_step_is_replaced(folder):
    (folder / "step00000008" / MANIFEST).unlink()
    (folder / "step00000008" / "stray.safetensors").write_bytes(b"half")
    save_checkpoint(folder, OURS, checkpoint(8))
    check_equal(load_checkpoint(folder, OURS), checkpoint(8))
    assert not (folder / "step00000008/stray.safetensors").exists()


FILES = ["model.safetensors", "optimiser.safetensors", "state.safetensors", "best.safetensors", MANIFEST]


def damages(content):
    size = len(content)
    for position in {0, 5, size // 3, size // 2, size - 1}:
        flipped = bytearray(content)
        flipped[position] ^= 4
        yield bytes(flipped)
    yield from (content[:length] for length in (0, 1, size // 2, size - 1))
    yield content + b" x"


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_falls_back_to_the_checkpoint_before(folder, name):
    """A damaged or missing file falls back to the checkpoint before."""
    file = folder / "step00000008" / name
    content = file.read_bytes()
    for damaged in damages(content):
        file.write_bytes(damaged)
        check_equal(load_checkpoint(folder, OURS), checkpoint(4))
    file.unlink()
    check_equal(load_checkpoint(folder, OURS), checkpoint(4))
    file.write_bytes(content)
    assert load_checkpoint(folder, OURS).step == 8
    shutil.rmtree(folder / "step00000004")
    file.unlink()
    assert load_checkpoint(folder, OURS) is None


def test_no_changed_bit_of_the_manifest_passes(folder):
    """A wrong step or fingerprint that can be read would resume another training."""
    shutil.rmtree(folder / "step00000004")
    file = folder / "step00000008" / MANIFEST
    content = file.read_bytes()
    for position in range(0, len(content), 7):
        bit = position // 7 % 8
        flipped = bytearray(content)
        flipped[position] ^= 1 << bit
        file.write_bytes(flipped)
        assert load_checkpoint(folder, OURS) is None, (position, bit)
