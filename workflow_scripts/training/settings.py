"""Settings of a training run that do not depend on its method."""

from typing import Literal

from pydantic import Field, model_validator

from workflow_scripts.config import Slice
from workflow_scripts.models.precision import PRECISION, Precision


class Development(Slice):
    """The set by which a checkpoint is chosen."""

    every: int = Field(gt=0, description="Steps between evaluations on the development set.")
    max_tokens: int = Field(gt=2, description="Longer sentences of the development set are cut.")


class Training(Slice):
    """How many steps, how large, how fast, and how often to look."""

    epochs: int | None = Field(gt=0, description="Passes over the corpus; null where max_steps is given.")
    max_steps: int | None = Field(gt=0, description="Optimiser steps; null where epochs is given.")
    batch_size: int = Field(gt=1, description="Sentences a step; the last incomplete batch is left out.")
    max_tokens: int = Field(gt=2, description="Longer sentences are cut, special tokens included.")
    learning_rate: float = Field(gt=0, lt=1, description="Peak of AdamW's rate.")
    schedule: Literal["linear", "constant"] = Field(
        description="linear falls towards 0, which step n + 1 of n would have."
    )
    warmup_steps: int = Field(ge=0, description="Steps over which the rate rises from 0.")
    weight_decay: float = Field(ge=0, description="AdamW's decay; 0 in SimCSE.")
    max_gradient_norm: float = Field(gt=0, description="Gradients are scaled down to this norm.")
    precision: Precision = Field(description=PRECISION)
    checkpoint_every: int = Field(gt=0, description="Steps between checkpoints.")
    gpus: int = Field(gt=0, description="Processes of a training, a GPU each; they share every step's batch.")
    cpu_threads: int = Field(gt=0, description="Threads of a step on a CPU; fixed, as sums depend on it.")

    @model_validator(mode="after")
    def _one_length(self) -> "Training":
        if (self.epochs is None) == (self.max_steps is None):
            raise ValueError("give epochs or max_steps, and null for the other")
        return self

    def steps(self, rows: int) -> int:
        """Optimiser steps over a corpus of ``rows`` sentences."""
        if self.max_steps is not None:
            return self.max_steps
        assert self.epochs is not None
        return self.epochs * (rows // self.batch_size)

    def rate(self, step: int, steps: int) -> float:
        """Learning rate of ``step`` (from 1) of ``steps``."""
        if step <= self.warmup_steps:
            return self.learning_rate * step / self.warmup_steps
        if self.schedule == "constant":
            return self.learning_rate
        return self.learning_rate * (steps - step + 1) / (steps - self.warmup_steps)
