"""The interface of a method: the contents of its module, and the objective that the training loop calls.

The settings of a method are the class in ``settings.methods`` whose ``module`` is its name. Its module here has

* ``build(config, *backbones)``, which makes the ``TextEncoder`` that is trained, evaluated and saved. It gets one
  backbone for each run that it starts from, and raises ``ConfigError`` if they do not fit the settings.
* ``Objective``, a subclass of the one below, made from the settings, the result of ``build``, and the corpus
  (``training.data.TrainingData``). It raises ``ConfigError`` if the corpus lacks a column that it reads.

Rule train_encoder imports both by the name in ``module`` of a block in config/methods.yaml. The smallest method is
``simcse``. Two kinds of modules train nothing and have only ``build``: ``frozen``, an encoder as it is, and methods
that join finished runs, whose ``build(config, encoders, tokenizers)`` gets the runs' encoders and tokenisers in order
(rule join_encoders).

Every training imports this file, so an edit retrains everything. Therefore it contains only declarations.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from workflow_scripts.models.encoder import TextEncoder

Metrics = Mapping[str, NDArray[np.float64]]
"""Name of a metric to its value at every step."""


class Step(NamedTuple):
    """Result of a step, on the device."""

    loss: Tensor
    """A scalar with a gradient."""
    metrics: Mapping[str, Tensor] = {}
    """Scalars for ``metrics.parquet`` of the run, with the same names at each step."""


class Objective(Protocol):
    """The part of a method that the training loop calls; subclasses set ``module`` and define ``inputs`` and ``loss``.

    A step has two halves. The host makes the ``inputs`` of a step while the device computes the step before. The device
    computes the ``loss`` only from these inputs and weights, so it never waits, and a whole step can be replayed.
    """

    module: nn.Module
    """All modules that are trained or saved in checkpoints: the encoder, and modules that are discarded at the end."""

    rate_budgets: Mapping[str, float] = {}
    """Parameters of ``module`` with a learning rate of their own: name to the sum of its rates over the training.

    Such parameters follow the common schedule, without weight decay or the bound on the gradient's norm. The sum is
    given in place of the rate, so that they get as far in a short training, or with large batches, as in a long one.
    """

    passes: int = 1
    """Number of passes of encoders in a step, each with keys for its dropout."""

    def inputs(self, step: int) -> Any:
        """Inputs of ``step`` (from 1), as nested tuples of tensors on the host; the same for the same seed."""
        raise NotImplementedError

    def loss(self, inputs: Any) -> Step:
        """Loss of a step from its ``inputs`` on the device; must not read a tensor's value on the host."""
        raise NotImplementedError

    @property
    def scored(self) -> TextEncoder | None:
        """The encoder to score on the development set; None for the encoder that is saved."""
        return None

    def findings(self, metrics: Metrics) -> Sequence[str]:
        """Labels for every number made with the trained encoder, if its metrics give a reason for any."""
        return ()

    def finish(self) -> None:
        """Change ``module`` after the training, before the encoder is saved; by default nothing changes."""
        return
