"""Two processes on the CPU (gloo), told of each other as torchrun tells them, against one."""

import os
import socket
from functools import partial

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from tests.numbers.training import rank_worker
from tests.support import small_methods
from tests.support.toy_training import Toy, run
from tests.support.training_jobs import started_child
from workflow_scripts.training import ranks

DROPOUTS = (0.0, 0.1)


def trained(folder, processes, dropouts=(0.1,), *, stop=0, chunk=0):
    """Outputs of trainings by this number of processes, one for each dropout; None if they were stopped."""
    folders = [folder / f"dropout{dropout}" for dropout in dropouts]
    for one in folders:
        small_methods.bert(one)

    def train(_rank):
        for one, dropout in zip(folders, dropouts, strict=True):
            rank_worker.train_in(one, dropout, stop, chunk or None)

    codes = in_ranks(train, folder, processes)
    said = "".join((folder / f"log{rank}").read_text() for rank in range(processes))
    assert codes == [int(bool(stop))] * processes, said
    return None if stop else [load_file(one / "found.safetensors") for one in folders]


def in_ranks(act, folder, processes):
    """Exit codes of processes that do something as ranks, of whose number it is told."""
    with socket.create_server(("localhost", 0)) as free:
        port = free.getsockname()[1]

    def join(rank):
        told = {"RANK": rank, "WORLD_SIZE": processes, "MASTER_ADDR": "localhost", "MASTER_PORT": port}
        os.environ.update({name: str(value) for name, value in told.items()})
        with ranks.joined():
            act(rank)

    started = [started_child(partial(join, rank), folder / f"log{rank}") for rank in range(processes)]
    for process in started:
        process.join()
    return [process.exitcode for process in started]


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
def test_two_processes_have_the_gradients_of_the_joint_batch(one, two, two_in_chunks, dropout):
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


def test_of_two_processes_one_writes_rows(two_in_chunks, tmp_path):
    (left,) = trained(tmp_path, 2)
    (table,) = tmp_path.glob("dropout0.1/*.csv")
    rows = pd.read_csv(table)
    assert rows["step"].to_list() == [1, 2, 3, 4, 5, 6]
    assert rows["loss"].to_list() == pytest.approx(left["losses"].tolist())


def test_two_processes_end_together_if_the_patience_of_one_ends(tmp_path):
    """Scores that differ between ranks would otherwise leave one waiting for the other."""

    def act(rank):
        scores = iter([0.1, 0.2, 0.3, 0.2, 0.5, 0.6] if rank else [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
        toy = Toy()
        history = run(toy, tmp_path / "checkpoints", 6, (1, lambda: next(scores)), patience=1).history
        assert len(history) == len(toy.asked) == 4

    assert in_ranks(act, tmp_path, 2) == [0, 0]


def test_a_cut_off_training_of_two_ends_in_the_same_bytes(two_in_chunks, tmp_path):
    """A training by two processes that was cut off ends in the same bytes."""
    whole = two_in_chunks
    trained(tmp_path, 2, stop=4, chunk=3)  # checkpoints lie at steps 2 and 4
    (resumed,) = trained(tmp_path, 2, chunk=3)
    assert whole["losses"].shape == (6,)
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)
