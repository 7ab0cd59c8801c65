"""The device on which a job encodes, and the precision of its products; weights stay in float32."""

import os
import sys
from contextlib import AbstractContextManager, nullcontext

import torch

from workflow_scripts.settings.names import Precision

KERNELS = 128
"""Number of kernels that oneDNN keeps for later products of the same shapes, a megabyte or more each.

The default is 1,024, but batches seldom have the same number of tokens: 160 steps of MiniLM took 2.6 GB with it, and
2.0 GB, and no more time, with 128.
"""


def granted_device(gpus: int) -> torch.device:
    """The GPU if the job requested one and the machine has one, else the CPU.

    On a GPU, algorithms are deterministic, and float32 products have all their digits.

    Args:
        gpus: Number of GPUs that the job requested, 0 or 1.
    """
    if not gpus:
        return torch.device("cpu")
    if not torch.cuda.is_available():
        message = "this job requested a GPU, but the machine has none: encoding on the CPU"
        print(message, file=sys.stderr)  # noqa: T201
        return torch.device("cpu")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # required by deterministic algorithms
    torch.use_deterministic_algorithms(True)
    torch.set_float32_matmul_precision("highest")
    return torch.device("cuda")


def mixed_precision(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """A block in which products on ``device`` have this precision.

    bfloat16 takes half the time on processors that support it, and much longer on others. On CPUs, ``auto`` keeps
    float32, so that they all give the same numbers.
    """
    automatic = precision == "auto" and device.type == "cuda" and torch.cuda.is_bf16_supported()
    if automatic or precision == "bfloat16":
        os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(KERNELS))  # read at the first product
        return torch.autocast(device.type, torch.bfloat16)
    return nullcontext()
