"""Settings of training for all methods: length, batches, learning rate, checkpoints."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from workflow_scripts.errors import ErrorDetails, shown
from workflow_scripts.settings.base import OPERATIONAL, Settings
from workflow_scripts.settings.names import MaxTokens, Precision


class Development(Settings):
    """Settings of checkpoint selection on a development set."""

    every: int = Field(
        gt=0, description="Steps between evaluations on the development set; the last step is evaluated too."
    )
    max_tokens: MaxTokens


LastBatch = Literal["keep", "drop"]


FEWEST_PAIRS = 100
"""Minimum size of a development set, in pairs, for a table without a note about its size.

A rank correlation of n pairs has a standard error of about 1 / sqrt(n - 1), ten points for a hundred.
"""


def batches(rows: int, batch_size: int, last_batch: LastBatch) -> int:
    """Return the number of steps of an epoch over ``rows`` sentences.

    ASSUME: a last batch of one sentence is dropped. Without negatives its loss and gradient are 0; a step would only
    apply momentum.
    """
    whole, left = divmod(rows, batch_size)
    return whole + (last_batch == "keep" and left > 1)


class Training(Settings):
    """Length, batch size, learning rate and intervals of a training.

    ``chunk`` is operational: it only makes a batch fit into memory (``training.chunks``). Losses and gradients equal
    those of the whole batch up to the order of float32 sums, which also differs between processors. Methods for which
    chunks would change more refuse them. ``gpus`` and ``cpu_threads`` change rounding, too, and are part of a run's
    identity: a table can compare numbers of processes. A resumed training continues with its first chunks or starts
    again, so all its steps are rounded alike.
    """

    epochs: int | None = Field(
        gt=0, le=1_000_000, description="Number of passes over the corpus; null if max_steps is set."
    )
    max_steps: int | None = Field(
        gt=0, le=1_000_000_000, description="Number of optimiser steps; null if epochs is set."
    )
    batch_size: int = Field(gt=1, description="Sentences per step.")
    last_batch: LastBatch = Field(description="Whether to keep or drop an epoch's last, smaller batch.")
    max_tokens: MaxTokens
    learning_rate: float = Field(gt=0, lt=1, description="Peak learning rate of AdamW.")
    schedule: Literal["linear", "constant"] = Field(
        description="Schedule of the learning rate; linear decays to min_lr_ratio, which step n + 1 of n would "
        "reach."
    )
    min_lr_ratio: float = Field(
        ge=0,
        lt=1,
        description="Final learning rate of linear, as a fraction of the peak; above 0 if the schedule is cut "
        "short.",
    )
    restart_every: int | None = Field(
        default=None,
        gt=0,
        description="Number of steps after which the schedule restarts; omit for one schedule.",
    )
    warmup_steps: int = Field(
        ge=0,
        description="Number of steps in which the learning rate rises to its peak; one step ahead of "
        "transformers, whose first step has the rate 0.",
    )
    patience: int | None = Field(
        default=None,
        gt=0,
        description="Number of consecutive evaluations without a better development score after which training ends; "
        "learning rates remain those of the full length. Omit for no early end, as in the papers.",
    )
    weight_decay: float = Field(ge=0, description="Weight decay of AdamW; 0 in SimCSE.")
    max_gradient_norm: float = Field(
        gt=0, description="Maximum norm of gradients; larger ones are scaled down to it."
    )
    precision: Precision
    checkpoint_minutes: float = Field(
        ge=0,
        description="Minutes between checkpoints; 0 writes one after every step.",
        json_schema_extra=OPERATIONAL,
    )
    chunk: int | None = Field(
        default=None,
        gt=0,
        description="Number of sentences in memory at a time, of all views of a batch; omit for all.",
        json_schema_extra=OPERATIONAL,
    )
    gpus: int = Field(
        gt=0, description="Number of processes, with a GPU each, among which each batch is divided."
    )
    cpu_threads: int = Field(
        gt=0, description="Number of threads on a CPU; fixed, because sums depend on it."
    )

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Require one length, a warm-up within the schedule, and a batch that the GPUs can share equally."""
        if (self.epochs is None) == (self.max_steps is None):
            yield ErrorDetails(
                "epochs",
                f"{shown(self.epochs)} with max_steps {shown(self.max_steps)}",
                "Set one of them, and the other to null.",
            )
        cycle = self.restart_every or self.max_steps
        if cycle and self.warmup_steps > cycle:
            key = "restart_every" if self.restart_every else "max_steps"
            yield ErrorDetails(
                "warmup_steps", f"{self.warmup_steps}, but {key} is {cycle}", f"Set it to {cycle} or less."
            )
        if self.batch_size % self.gpus:
            yield ErrorDetails(
                "batch_size",
                f"{self.batch_size} is not a multiple of the {self.gpus} GPUs",
                f"Set it to {-(-self.batch_size // self.gpus) * self.gpus}, for example.",
            )

    def steps(self, rows: int) -> int:
        """Return the number of optimiser steps for a corpus of ``rows`` sentences."""
        if self.max_steps is not None:
            return self.max_steps
        assert self.epochs is not None
        return self.epochs * batches(rows, self.batch_size, self.last_batch)

    def cycle(self, steps: int) -> int:
        """Return the number of steps of one schedule in a training of ``steps``."""
        return self.restart_every or steps

    def lr(self, step: int, steps: int) -> float:
        """Return the learning rate of ``step`` (from 1) of ``steps``.

        A warm-up of w steps has 1/w, 2/w, ..., 1 of the peak. ``get_scheduler`` of transformers has 0, 1/w, ...,
        (w - 1)/w. ASSUME: a first step at rate 0 trains nothing, so it is omitted, and the rest of the warm-up is one
        step ahead. After the warm-up, and without one as for the methods here, the rates are those of transformers.
        """
        steps = self.cycle(steps)
        step = (step - 1) % steps + 1
        if step <= self.warmup_steps:
            return self.learning_rate * step / self.warmup_steps
        if self.schedule == "constant":
            return self.learning_rate
        left = (steps - step + 1) / (steps - self.warmup_steps)
        return self.learning_rate * (self.min_lr_ratio + (1 - self.min_lr_ratio) * left)


class TeacherEncoding(Settings):
    """Settings of a teacher's encoding of a corpus: section ``teacher`` of the configuration."""

    max_tokens: MaxTokens


class ContinueMlm(Settings):
    """Settings of ``continue_mlm``."""

    mlm_probability: float = Field(gt=0, lt=1, description="Fraction of tokens to predict; BERT uses 0.15.")
    seed: int = Field(ge=0, description="Seed for the order of sentences, the masks and the new head.")
    training: Training

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Refuse several processes, chunks and patience."""
        if self.training.gpus > 1:
            yield ErrorDetails(
                "training.gpus",
                f"{self.training.gpus}; processes would mask different numbers of tokens",
                "Set it to 1.",
            )
        if self.training.patience:
            problem = f"{self.training.patience}, but this training has no development set"
            yield ErrorDetails("training.patience", problem, "Remove `patience`.")
        if self.training.chunk:
            yield ErrorDetails(
                "training.chunk",
                f"{self.training.chunk}, but this training has no contrastive loss",
                "Remove `chunk`; to save memory, reduce batch_size.",
            )
