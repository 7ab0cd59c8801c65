"""In what precision an encoder multiplies; weights stay in float32."""

import os
from contextlib import AbstractContextManager, nullcontext

import torch

from workflow_scripts.settings.precision import Precision

KERNELS = 128
"""Kernels that oneDNN keeps for later products of the same shapes, a megabyte or more each.

It would keep 1,024, but no two batches have the same number of tokens: 160 steps of MiniLM took 2.6 GB so, and 2.0 GB
and no more time with these.
"""


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
