"""In what precision an encoder multiplies."""

from typing import Annotated, Literal

from pydantic import Field

Precision = Annotated[
    Literal["auto", "float32", "bfloat16"],
    Field(
        description="Of the encoder's matrix products; auto is bfloat16 where the GPU has it, and never on a CPU."
    ),
]
