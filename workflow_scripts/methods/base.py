"""The whole contract of a method: what a file of this folder holds, and what the training loop asks of it.

A method is a module with ``overrides``, ``build`` and ``Objective`` (``Method``); its ``Config`` is in the module of
its name in ``settings/methods``. Rule train_encoder imports both by the name that ``module`` of a block in
config/methods.yaml gives. The smallest is ``simcse``. Two kinds of modules train nothing and have ``Config`` and
``build`` alone: ``frozen``, an encoder as it is, and those that start from finished runs (``JoiningMethod``).

Every training imports this file, so an edit of it retrains everything: it is kept to declarations.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel

from workflow_scripts.models.encoder import SentenceEncoder, TextEncoder
from workflow_scripts.settings.methods import MethodConfig

Metrics = Mapping[str, NDArray[np.float64]]
"""Name of a metric to its value at every step."""


class Objective(Protocol):
    """What a method gives the training loop; a subclass sets ``module`` and defines ``loss``."""

    module: nn.Module
    """Everything that is trained or kept in checkpoints: the encoder, and what is thrown away after training."""

    metric_names: Sequence[str] = ()
    """What ``metrics.parquet`` of a run records at every step."""

    rate_budgets: Mapping[str, float] = {}
    """Name of a parameter of ``module`` to the sum of its learning rates over the training, where that is its own.

    Such parameters follow the common schedule, without weight decay or the bound on the gradient's norm. Their sum is
    given and not their rate, so that they get as far in a short training, or with large batches, as in a long one.
    """

    def loss(self, step: int) -> Tensor:
        """Loss of ``step`` (from 1), a scalar with a gradient; the same for the same seed and step."""
        raise NotImplementedError

    def metrics(self) -> Sequence[Tensor | float]:
        """Values of ``metric_names`` at the step whose loss was asked for last, left on their device."""
        return ()

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


class ContrastiveObjective(Objective):
    """An objective in two halves, between which another method (``three_r``) can change vectors."""

    encoder: SentenceEncoder

    def views(self, step: int) -> Tensor:
        """Every vector of the step before the head, of all processes, (V, B, R); the first view comes first."""
        raise NotImplementedError

    def contrast(self, views_VBD: Tensor) -> Tensor:
        """Loss of such vectors after the head, a scalar."""
        raise NotImplementedError

    def loss(self, step: int) -> Tensor:
        """Contrast the step's views after the head."""
        return self.contrast(self.encoder.project(self.views(step)))


AnyObjective = Objective


class Method(Protocol):
    """A module that rule train_encoder can run.

    Its functions pass ``config``, of its own ``Config``, and the encoder, of the class that its ``build`` makes, to
    each other, hence ``Any`` here.
    """

    @property
    def Config(self) -> type[MethodConfig]:  # noqa: N802
        """The class of its settings."""

    def overrides(self, config: Any) -> Mapping[str, Any]:
        """Keyword arguments of ``models.encoder.load_backbone``: dropout, entries of the model's configuration."""

    def build(self, config: Any, *backbones: PreTrainedModel) -> TextEncoder:
        """The encoder that is trained, evaluated and saved, of one backbone for each run that it starts from.

        Raises:
            ConfigError: if the settings ask for what a backbone lacks.
        """

    @property
    def Objective(self) -> Callable[[Any, Any, Any], AnyObjective]:  # noqa: N802
        """Made of the settings, what ``build`` made, and the corpus (``training.data.TrainingData``).

        Raises:
            ConfigError: if the corpus lacks a column that the method reads.
        """


class JoiningMethod(Protocol):
    """A module that makes one encoder of finished runs, without training (rule join_encoders)."""

    @property
    def Config(self) -> type[MethodConfig]:  # noqa: N802
        """The class of its settings."""

    def build(self, config: Any, encoders: Sequence[TextEncoder]) -> TextEncoder:
        """The encoder that is evaluated and saved, of those of the runs in their order.

        Raises:
            ConfigError: if the settings do not fit the encoders.
        """
