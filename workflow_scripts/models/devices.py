"""The device that a job encodes on, and in what precision it multiplies; weights stay in float32."""

import os
import sys
from contextlib import AbstractContextManager, nullcontext

import torch

from workflow_scripts.settings.names import Precision

KERNELS = 128
"""Kernels that oneDNN keeps for later products of the same shapes, a megabyte or more each.

It would keep 1,024, but no two batches have the same number of tokens: 160 steps of MiniLM took 2.6 GB so, and 2.0 GB
and no more time with these.
"""


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


def mixed_precision(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """Within it, products on ``device`` have the precision that is asked for.

    bfloat16 takes half the time on processors that have it, and much longer on others; ``auto`` leaves CPUs alone,
    so that they all give the same numbers.
    """
    of_itself = precision == "auto" and device.type == "cuda" and torch.cuda.is_bf16_supported()
    if of_itself or precision == "bfloat16":
        os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(KERNELS))  # read at the first product
        return torch.autocast(device.type, torch.bfloat16)
    return nullcontext()
