"""Interface between the training loop and the methods: each method defines an objective.

Every training imports this file, so an edit retrains everything. Therefore it contains only declarations.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from workflow_scripts.models.text_encoder import TokenEncoder

Metrics = Mapping[str, NDArray[np.float64]]
"""Values of each metric at every step, by name."""


class LossOutput(NamedTuple):
    """Result of a step, on the device."""

    loss: Tensor
    """A scalar with a gradient."""
    metrics: Mapping[str, Tensor] = {}
    """Scalars for ``metrics.parquet`` of the run, with the same names at each step."""


class Objective(ABC):
    """The part of a method that the training loop calls; subclasses set ``module`` and define ``inputs`` and ``loss``.

    A step has two halves. The host makes the ``inputs`` of a step while the device computes the step before. The device
    computes the ``loss`` only from these inputs and weights, so it never waits, and a whole step can be replayed.
    """

    module: nn.Module
    """All modules that are trained or saved in checkpoints: the encoder, and modules that are discarded at the end."""

    lr_budgets: Mapping[str, float] = {}
    """Parameters of ``module`` with their own learning rate: the sum of the rates over the training, by name.

    Such parameters follow the common schedule, without weight decay or the bound on the gradient's norm. The sum is
    given in place of the rate, because they then get as far in a short training, or with large batches, as in a long
    one.
    """

    passes: int = 1
    """Number of passes of encoders in a step, each with keys for its dropout."""

    @abstractmethod
    def inputs(self, step: int) -> Any:
        """Return the inputs of ``step`` (from 1), nested tuples of tensors on the host; the same for the same seed."""

    @abstractmethod
    def loss(self, inputs: Any) -> LossOutput:
        """Return the loss of a step from its ``inputs`` on the device, without reading a tensor's value on the host."""

    @property
    def scored(self) -> TokenEncoder | None:
        """Return the encoder to score on the development set; None for the encoder that is saved."""
        return None

    def labels(self, metrics: Metrics) -> Sequence[str]:
        """Return labels for all numbers made with the trained encoder, by reasons in its metrics."""
        return ()

    def finish(self) -> None:
        """Change ``module`` after the training, before the encoder is saved; by default nothing changes."""
        return
