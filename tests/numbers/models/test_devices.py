"""The device on which a job encodes."""

import pytest
import torch

from workflow_scripts.models.devices import granted_device


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    precision = torch.get_float32_matmul_precision()
    torch.use_deterministic_algorithms(False)  # whatever a test before has left
    yield
    torch.use_deterministic_algorithms(False)
    torch.set_float32_matmul_precision(precision)


def there(monkeypatch, answer):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: answer)


def test_a_job_without_a_gpu_leaves_one_that_is_there_alone(monkeypatch):
    there(monkeypatch, True)
    assert granted_device(0) == torch.device("cpu")
    assert not torch.are_deterministic_algorithms_enabled()


def test_a_gpu_that_was_granted_is_used_deterministically_and_in_full_precision(monkeypatch):
    there(monkeypatch, True)
    torch.set_float32_matmul_precision("medium")
    assert granted_device(1) == torch.device("cuda")
    assert torch.are_deterministic_algorithms_enabled()
    assert torch.get_float32_matmul_precision() == "highest"


def test_a_machine_without_one_encodes_on_its_processor_and_says_so(monkeypatch, capsys):
    there(monkeypatch, False)
    assert granted_device(1) == torch.device("cpu")
    (line,) = capsys.readouterr().err.splitlines()
    assert "requested a GPU, but the machine has none" in line
