"""Recording of the inputs of an encoder's modules during passes."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn


def context_projections(model: nn.Module) -> list[nn.Module]:
    """Return the modules whose input is the context tensor of a self-attention layer, in the order of layers."""
    return [module for name, module in model.named_modules() if name.endswith("attention.output.dense")]


@contextmanager
def recorded_inputs(modules: Sequence[nn.Module]) -> Iterator[list[tuple[Any, Tensor]]]:
    """Record calls of modules inside the block: each module with its first input."""
    calls: list[tuple[Any, Tensor]] = []
    with ExitStack() as hooks:
        for module in modules:
            hook = module.register_forward_pre_hook(lambda module, inputs: calls.append((module, inputs[0])))
            hooks.enter_context(hook)
        yield calls
