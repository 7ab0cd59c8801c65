"""Encoders without the last of their LayerNorms (JTCSE, section VI-A and Fig. 8)."""

from typing import Any

from torch import Tensor, nn


def bypass_layernorms(backbone: Any, last: int) -> None:
    """Let the states of the ``last`` layers through unnormalised.

    The weights of the LayerNorms stay where they are, unused, so that a saved encoder is a stock encoder.
    """
    layers = list(backbone.encoder.layer)
    for layer in layers[len(layers) - last :]:
        for norm in (layer.attention.output.LayerNorm, layer.output.LayerNorm):
            norm.register_forward_hook(_let_through)


def _let_through(_module: nn.Module, inputs: tuple[Tensor, ...], _output: Tensor) -> Tensor:
    return inputs[0]
