"""Settings of LayerAttPooler."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from workflow_scripts.settings.readouts import ReadoutConfig
from workflow_scripts.settings.start import Start, first_token_alone

Pooling = Literal[
    "cls_last",
    "avg_last",
    "avg_first_last",
    "avg_last_and_avg_first_last",
    "cls_last_and_avg_last",
    "attention_cls",
    "attention_avg",
    "attention_cls_avg",
    "cls_last_and_attention_cls_avg",
]


class Config(ReadoutConfig):
    """Settings of the pooler."""

    kind: Literal["layer_attention"]
    pooling: Pooling = Field(description="A row of Table 2.")
    weights: Literal["softmax", "ratio", "diagonal"] = Field(
        description="softmax: the code's; ratio: a score over the sum of its row; diagonal: Equation 1 as printed."
    )
    projection: Literal["linear", "rrelu", "rrelu_per_query"] = Field(
        description="What follows W_q, W_k and W_v; the code draws slopes of keys and values anew for each query."
    )
    embeddings: bool = Field(description="Whether the embedding output is a layer, as in the code.")
    divisor: Literal["layers", "sqrt_width", "none"] = Field(
        description="Of the scores: their number of layers (the code), the root of the width, or 1; softmax reads it."
    )
    first_state: Literal[0, 1] = Field(
        description="First hidden state of the averages over first and last; 0, the embedding output, in the code."
    )

    @property
    def has_head(self) -> bool:
        """All poolings of the paper have an MLP."""
        return True

    def misfits(self, start: Start) -> Iterator[str]:
        """There are layers to attend to, and the first token knows the others."""
        if 0 in start.depths:
            yield f"readout.kind: layer_attention; {start.encoder} has no layers to attend to. Name another."
        if "cls" in self.pooling:
            yield from first_token_alone("readout.pooling", start)
