"""In what precision an encoder multiplies."""

from typing import Literal

Precision = Literal["auto", "float32", "bfloat16"]
PRECISION = "Of the encoder's matrix products; auto is bfloat16 where the GPU has it, and never on a CPU."
