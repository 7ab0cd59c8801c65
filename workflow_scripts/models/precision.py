"""In what precision an encoder multiplies; weights stay in float32."""

from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch

Precision = Literal["auto", "float32", "bfloat16"]
PRECISION = "Of the encoder's matrix products; auto is bfloat16 where the GPU has it, and never on a CPU."


def mixed_precision(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """Within it, products on ``device`` have the precision that is asked for.

    bfloat16 takes half the time on processors that have it, and much longer on others; ``auto`` leaves CPUs alone,
    so that they all give the same numbers.
    """
    of_itself = precision == "auto" and device.type == "cuda" and torch.cuda.is_bf16_supported()
    if of_itself or precision == "bfloat16":
        return torch.autocast(device.type, torch.bfloat16)
    return nullcontext()
