"""The whole contract of a method: what a file of this folder holds, and what the training loop asks of it.

The settings of a method are the class in ``settings.methods`` whose ``module`` is its name. Its module here has

* ``build(config, *backbones)``, which makes the ``TextEncoder`` that is trained, evaluated and saved, of one backbone
  for each run that it starts from, and raises ``ConfigError`` where they lack what the settings ask for, and
* ``Objective``, a subclass of the one below, made of the settings, what ``build`` made, and the corpus
  (``training.data.TrainingData``); it raises ``ConfigError`` if the corpus lacks a column that it reads.

Rule train_encoder imports both by the name that ``module`` of a block in config/methods.yaml gives. The smallest is
``simcse``. Two kinds of modules train nothing and have ``build`` alone: ``frozen``, an encoder as it is, and those that
start from finished runs, whose ``build(config, encoders, tokenizers)`` gets those of the runs in order (rule
join_encoders).

Every training imports this file, so an edit of it retrains everything: it is kept to declarations.
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
    """Scalars that ``metrics.parquet`` of a run records, under the same names at each step."""


class Objective(Protocol):
    """What a method gives the training loop; a subclass sets ``module`` and defines ``inputs`` and ``loss``.

    A step has two halves. The host makes the ``inputs`` of a step while the device computes the one before; the device
    computes the ``loss`` from them and from weights alone, so that it never waits and a whole step can be replayed.
    """

    module: nn.Module
    """Everything that is trained or kept in checkpoints: the encoder, and what is thrown away after training."""

    rate_budgets: Mapping[str, float] = {}
    """Name of a parameter of ``module`` to the sum of its learning rates over the training, where that is its own.

    Such parameters follow the common schedule, without weight decay or the bound on the gradient's norm. Their sum is
    given and not their rate, so that they get as far in a short training, or with large batches, as in a long one.
    """

    passes: int = 1
    """Passes of encoders in a step that draw by the step's keys."""

    def inputs(self, step: int) -> Any:
        """All that ``step`` (from 1) reads, as nested tuples of tensors on the host; the same for the same seed."""
        raise NotImplementedError

    def loss(self, inputs: Any) -> Step:
        """Loss of a step, of the tensors of ``inputs`` on the device; reads no tensor's value on the host."""
        raise NotImplementedError

    @property
    def scored(self) -> TextEncoder | None:
        """What is scored on the development set, where that is not the encoder as it is saved."""
        return None

    def findings(self, metrics: Metrics) -> Sequence[str]:
        """What its metrics tell that a reader of any number made with the trained encoder must know."""
        return ()

    def finish(self) -> None:
        """Change ``module`` once the training is over, before the encoder is saved; most methods need not."""
        return
