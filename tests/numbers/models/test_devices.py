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


@pytest.mark.parametrize(
    ("requested", "available", "device"), [(0, True, "cpu"), (1, True, "cuda"), (1, False, "cpu")]
)
def test_a_granted_gpu_is_deterministic_and_precise_and_a_missing_one_is_reported(
    monkeypatch, capsys, requested, available, device
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: available)
    torch.set_float32_matmul_precision("medium")
    assert granted_device(requested) == torch.device(device)
    assert torch.are_deterministic_algorithms_enabled() == (device == "cuda")
    assert torch.get_float32_matmul_precision() == ("highest" if device == "cuda" else "medium")
    missing = "requested a GPU, but the machine has none" in capsys.readouterr().err
    assert missing == (requested and not available)
