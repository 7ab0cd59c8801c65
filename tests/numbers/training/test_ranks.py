"""Two processes on the CPU (gloo), told of each other as torchrun tells them, against one."""

import os
import socket
import sys
from functools import partial

import pytest
import torch
from safetensors.torch import load_file

from tests import walk
from tests.jobs import started_child
from tests.numbers.training import rank_worker
from tests.planning import ROOT
from tests.processes import run_together
from workflow_scripts.errors import ConfigError
from workflow_scripts.jobs.__main__ import command
from workflow_scripts.training import ranks

DROPOUTS = (0.0, 0.1)


def trained(folder, processes, dropouts=(0.1,), *, stop=0, chunk=0):
    """Outputs of trainings by this number of processes, one for each dropout; None if they were stopped."""
    folders = [folder / f"dropout{dropout}" for dropout in dropouts]
    for one in folders:
        walk.bert(one)
    with socket.create_server(("localhost", 0)) as free:
        port = free.getsockname()[1]

    def train(rank):
        told = {"RANK": rank, "WORLD_SIZE": processes, "MASTER_ADDR": "localhost", "MASTER_PORT": port}
        os.environ.update({name: str(value) for name, value in told.items()})
        with ranks.joined():
            for one, dropout in zip(folders, dropouts, strict=True):
                rank_worker.train_in(one, dropout, stop, chunk or None)

    started = [started_child(partial(train, rank), folder / f"log{rank}") for rank in range(processes)]
    for process in started:
        process.join()
    said = "".join((folder / f"log{rank}").read_text() for rank in range(processes))
    assert [process.exitcode for process in started] == [int(bool(stop))] * processes, said
    return None if stop else [load_file(one / "found.safetensors") for one in folders]


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """Outputs of a training by one process, by dropout."""
    return dict(zip(DROPOUTS, trained(tmp_path_factory.mktemp("one"), 1, DROPOUTS), strict=True))


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Outputs of a training by two processes, by dropout."""
    return dict(zip(DROPOUTS, trained(tmp_path_factory.mktemp("two"), 2, DROPOUTS), strict=True))


@pytest.fixture(scope="module")
def two_in_chunks(tmp_path_factory):
    """Outputs of a training by two processes that encode three sentences at a time."""
    (left,) = trained(tmp_path_factory.mktemp("chunks"), 2, chunk=3)
    return left


@pytest.mark.parametrize("dropout", [*DROPOUTS, "in chunks"])
def test_two_processes_have_the_loss_and_the_gradients_of_the_joint_batch(one, two, two_in_chunks, dropout):
    """Dropout does not depend on the process of a sentence, or on the sentences encoded with it."""
    in_chunks = dropout == "in chunks"
    one, two = (one[0.1], two_in_chunks) if in_chunks else (one[dropout], two[dropout])
    close = 1e-5 if in_chunks else 1e-6
    gradients = [name for name in one if name.startswith("gradient ")]
    assert len(gradients) > 20
    assert max(one[name].abs().max() for name in gradients) > 1e-2  # else agreement would say little
    for name in ("loss", *gradients):
        torch.testing.assert_close(two[name], one[name], rtol=close, atol=close, msg=name)
    # AdamW divides by the gradient's size, so rounding grows from step to step.
    torch.testing.assert_close(two["losses"], one["losses"], rtol=1e-3, atol=1e-3)


def test_a_training_by_two_processes_that_was_cut_off_ends_in_the_same_bytes(two_in_chunks, tmp_path):
    whole = two_in_chunks
    trained(tmp_path, 2, stop=4, chunk=3)  # checkpoints lie at steps 2 and 4
    (resumed,) = trained(tmp_path, 2, chunk=3)
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


SRUN = """#!/bin/sh
# A cluster of two nodes: the same command on each, at the same time, each under a name of its own.
number=0
for option in "$@"; do
    case $option in --*) shift ;; *) break ;; esac
done
for name in first second; do
    HOSTNAME=$name SLURM_NODEID=$number SLURM_PROCID=$number "$@" &
    number=$((number + 1))
done
status=0
for child in $(jobs -p); do wait "$child" || status=$?; done
exit $status
"""
QUEUE = """#!/bin/sh
case "$0 $*" in
    *squeue*--jobs=4711*) echo "node[1-2]" ;;
    *"scontrol show hostnames node[1-2]") printf 'localhost\\nsecond\\n' ;;
    *) exit 1 ;;
esac
"""


@pytest.fixture
def two_nodes(tmp_path):
    """Variables of a job on two nodes, and SLURM's commands as far as a launch needs them."""
    for name, text in {"srun": SRUN, "squeue": QUEUE, "scontrol": QUEUE}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_ID": "4711"}


@pytest.mark.slow
def test_two_nodes_have_the_loss_and_the_gradients_of_the_joint_batch(one, tmp_path, two_nodes):
    """Two torchruns that know nothing of each other but where they meet, as srun starts them."""
    one = one[0.0]
    walk.bert(tmp_path / "two")
    worker = ["tests.numbers.training.rank_worker", "0", "0", str(tmp_path / "two"), "0.0"]
    script = f"from workflow_scripts.jobs.__main__ import become; become({worker}, 2)"
    said = run_together([sys.executable, "-c", script], 300, PYTHONPATH=str(ROOT), **two_nodes)
    assert said is None
    two = load_file(tmp_path / "two/found.safetensors")
    for name in ("loss", *(name for name in one if name.startswith("gradient "))):
        torch.testing.assert_close(two[name], one[name], rtol=1e-6, atol=1e-6, msg=name)


def test_a_launch_says_where_its_nodes_meet():
    said = {"squeue": "gpu[3-4]\n", "scontrol": "gpu3\ngpu4\n"}
    started = command(["train", "--seed", "1"], 8, "123456", lambda name, *_: said[name])
    assert started[0] == "srun" and {"--nodes=2", "--ntasks=2", "--ntasks-per-node=1"} <= {*started}
    rest = started[started.index(sys.executable) :]
    assert rest[3:] == [
        "--nnodes=2", "--nproc-per-node=4", "--rdzv-backend=c10d", "--rdzv-id=123456", "--rdzv-endpoint=gpu3:23456",
        "-m", "train", "--seed", "1",
    ]  # fmt: skip
    alone = command(["train"], 4, "123456", lambda name, *_: "gpu3\n")
    assert alone[3:] == ["--standalone", "--nproc-per-node=4", "-m", "train"]
    assert alone == command(["train"], 4, None)
    with pytest.raises(ConfigError, match="3 processes on 2 nodes"):
        command(["train"], 3, "1", lambda name, *_: said[name])
