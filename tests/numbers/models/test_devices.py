"""The device on which a job encodes."""

import os

import pytest
import torch

from tests.support import toys
from workflow_scripts.errors import ConfigError
from workflow_scripts.models import devices
from workflow_scripts.models.devices import RESERVED, granted_device, mixed_precision
from workflow_scripts.training import ranks
from workflow_scripts.training.loop import prepare


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    for name in RESERVED:
        monkeypatch.delenv(name, raising=False)
    precision, threads = torch.get_float32_matmul_precision(), torch.get_num_threads()
    monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", True)
    torch.use_deterministic_algorithms(False)  # whatever a test before has left
    yield
    torch.use_deterministic_algorithms(False)
    torch.set_float32_matmul_precision(precision)
    torch.set_num_threads(threads)


@pytest.mark.parametrize(
    ("requested", "available", "device"), [(0, True, "cpu"), (1, True, "cuda"), (1, False, "cpu")]
)
def test_a_granted_gpu_is_deterministic_and_precise(monkeypatch, capsys, requested, available, device):
    """A granted GPU is deterministic and precise and a missing one is reported."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: available)
    torch.set_float32_matmul_precision("medium")
    assert granted_device(requested) == torch.device(device)
    assert torch.are_deterministic_algorithms_enabled() == (device == "cuda")
    assert torch.utils.deterministic.fill_uninitialized_memory == (device == "cpu")
    assert torch.get_float32_matmul_precision() == ("highest" if device == "cuda" else "medium")
    missing = "requested a GPU, but the machine has none" in capsys.readouterr().err
    assert missing == (requested and not available)


WORK = {"training": ranks.device, "encoding": lambda: granted_device(1)}


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("reserved", RESERVED)
@pytest.mark.parametrize("gpu", ["0", "3,1", "GPU-5f2c", "", "-1,0", "NoDevFiles"])
def test_a_reserved_gpu_that_cannot_be_used_is_an_error(monkeypatch, capsys, work, reserved, gpu):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv(reserved, gpu)
    if gpu in ("", "-1,0", "NoDevFiles"):  # no GPU is meant
        assert WORK[work]() == torch.device("cpu")
        assert capsys.readouterr().err == (
            f"this job requested a GPU, but the machine has none: {work} on the CPU\n"
        )
        return
    with pytest.raises(ConfigError) as error:
        WORK[work]()
    assert str(error.value).startswith(f"{reserved}: GPU {gpu.split(',')[0]} is reserved for this job, but ")
    assert "\n" not in str(error.value)


def test_an_empty_list_of_gpus_runs_on_the_cpu_as_the_error_says(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv("SLURM_JOB_GPUS", "0")
    with pytest.raises(ConfigError, match='set CUDA_VISIBLE_DEVICES="" to run on the CPU'):
        granted_device(1)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert granted_device(1) == torch.device("cpu")


@pytest.fixture
def two_gpus(monkeypatch):
    """A machine with two GPUs; returns the GPUs that were made the current one."""
    chosen = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    return chosen


def test_each_process_makes_its_own_gpu_the_current_one(monkeypatch, two_gpus):
    """Each process of a training makes its own GPU the current one."""
    joined = {}
    monkeypatch.setattr(ranks.dist, "init_process_group", lambda backend, **more: joined.update(more))
    monkeypatch.setattr(ranks.dist, "destroy_process_group", lambda: None)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", "1")
    with ranks.joined():
        assert ranks.device() == torch.device("cuda", 1)
    assert {*two_gpus} == {torch.device("cuda", 1)}
    assert joined == {"device_id": torch.device("cuda", 1)}


def test_the_host_of_a_gpu_computes_on_one_thread(monkeypatch, two_gpus):
    """The host of a GPU computes on one thread and tokenises on all."""
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    settings = toys.training_of(toys.SMALL, cpu_threads=2)
    prepare(settings, seed=1)
    assert (torch.get_num_threads(), os.environ["TOKENIZERS_PARALLELISM"]) == (1, "true")
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    prepare(settings, seed=1)
    assert (torch.get_num_threads(), os.environ["TOKENIZERS_PARALLELISM"]) == (2, "false")


def test_bfloat16_is_automatic_only_where_a_gpu_computes_in_it(monkeypatch):
    for major, entered in ((7, False), (8, True)):  # Turing emulates it, Ampere computes in it
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True, major=major: including_emulation or major >= 8)  # fmt: skip
        monkeypatch.setattr(torch, "autocast", lambda *of: of)
        found = mixed_precision("auto", torch.device("cuda"))
        assert (found == ("cuda", torch.bfloat16)) == entered


def test_another_model_of_gpu_is_another_kind_of_device(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"NVIDIA H{device.index}00")
    kinds = [devices.kind_of(torch.device(name)) for name in ("cpu", "cuda:1", "cuda:2")]
    assert kinds == ["cpu", "cuda NVIDIA H100", "cuda NVIDIA H200"]
