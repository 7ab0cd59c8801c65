"""The device that a job encodes on."""

import os
import sys

import torch


def granted_device(gpus: int) -> torch.device:
    """The GPU that a job was granted, where this machine has one; else the CPU, even beside a GPU that others use.

    On a GPU, algorithms are deterministic, and float32 products have all their digits.

    Args:
        gpus: What the job asked for, 0 or 1.
    """
    if not gpus:
        return torch.device("cpu")
    if not torch.cuda.is_available():
        print("this job asked for a GPU, and none is here: encoding on the CPU", file=sys.stderr)  # noqa: T201
        return torch.device("cpu")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # required by deterministic algorithms
    torch.use_deterministic_algorithms(True)
    torch.set_float32_matmul_precision("highest")
    return torch.device("cuda")
