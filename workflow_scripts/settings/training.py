"""How encoders are trained, whatever the method: lengths, batches, learning rates, checkpoints."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from workflow_scripts.errors import Finding, shown
from workflow_scripts.settings.base import OPERATIONAL, Settings
from workflow_scripts.settings.names import MaxTokens, Precision


class Development(Settings):
    """The development set, which selects the checkpoint."""

    every: int = Field(
        gt=0, description="Steps between evaluations on the development set; the last step has one too."
    )
    max_tokens: MaxTokens


LastBatch = Literal["keep", "drop"]


FEWEST_PAIRS = 100
"""Pairs of a development set below which a table says by how many its checkpoints were chosen.

A rank correlation of n pairs has a standard error of about 1 / sqrt(n - 1), ten points for a hundred.
"""


def batches(rows: int, batch_size: int, last_batch: LastBatch) -> int:
    """Steps of an epoch over ``rows`` sentences.

    ASSUME: a single sentence that is left is never a batch. Nothing is contrasted with anything there: the loss is 0
    without a gradient, and a step would only go on as the last ones went.
    """
    whole, left = divmod(rows, batch_size)
    return whole + (last_batch == "keep" and left > 1)


class Training(Settings):
    """Length, batch size, learning rate and intervals of a training.

    ``chunk`` decides no result: it is a way to fit a batch into memory (``training.chunks``). Losses and gradients are
    those of the whole batch but for the order in which float32 is summed, which another kind of processor changes as
    well without counting as a change; where chunks would change more, they are refused. ``gpus`` and ``cpu_threads``,
    which change rounding too, are part of what a run is: a table may be about one number of processes alone. A training
    that was stopped goes on with the chunks that it began with, or begins again, so that all its steps round alike.
    """

    epochs: int | None = Field(
        gt=0, le=1_000_000, description="Passes over the corpus; null if max_steps is given."
    )
    max_steps: int | None = Field(
        gt=0, le=1_000_000_000, description="Optimiser steps; null if epochs is given."
    )
    batch_size: int = Field(gt=1, description="Sentences per step.")
    last_batch: LastBatch = Field(
        description="Whether an epoch keeps or drops its last batch where that is smaller than the others."
    )
    max_tokens: MaxTokens
    learning_rate: float = Field(gt=0, lt=1, description="Peak learning rate of AdamW.")
    schedule: Literal["linear", "constant"] = Field(
        description="linear decays towards rate_at_end, which would be reached at step n + 1 of n."
    )
    rate_at_end: float = Field(
        ge=0, lt=1, description="Fraction of the peak that linear reaches; above 0 where it is cut short."
    )
    restart_every: int | None = Field(
        default=None, gt=0, description="Steps after which the schedule begins again; omit for one schedule."
    )
    warmup_steps: int = Field(
        ge=0,
        description="Steps over which the learning rate rises to its peak: a step ahead of transformers, whose first "
        "step has the rate 0.",
    )
    patience: int | None = Field(
        default=None,
        gt=0,
        description="Evaluations on the development set without a better score after which the training ends; the "
        "learning rates stay those of the full length. Leave it out for none, as in the papers.",
    )
    weight_decay: float = Field(ge=0, description="Weight decay of AdamW; 0 in SimCSE.")
    max_gradient_norm: float = Field(gt=0, description="Gradients are scaled down to this norm.")
    precision: Precision
    checkpoint_minutes: float = Field(
        ge=0,
        description="Between checkpoints; 0 writes one after every step.",
        json_schema_extra=OPERATIONAL,
    )
    chunk: int | None = Field(
        default=None,
        gt=0,
        description="Sentences in memory at a time, of all views of a step's batch; left out for all of them.",
        json_schema_extra=OPERATIONAL,
    )
    gpus: int = Field(
        gt=0, description="Processes, each with a GPU; every step's batch is divided among them."
    )
    cpu_threads: int = Field(gt=0, description="Threads on a CPU; fixed, since sums depend on their number.")

    def conflicts(self) -> Iterator[Finding]:
        """There is one length, and the GPUs share every batch."""
        if (self.epochs is None) == (self.max_steps is None):
            yield Finding(
                "epochs",
                f"{shown(self.epochs)} with max_steps {shown(self.max_steps)}",
                "Give one of them, and null for the other.",
            )
        cycle = self.restart_every or self.max_steps
        if cycle and self.warmup_steps > cycle:
            key = "restart_every" if self.restart_every else "max_steps"
            yield Finding(
                "warmup_steps", f"{self.warmup_steps}, but {key} is {cycle}", f"Set it to {cycle} or less."
            )
        if self.batch_size % self.gpus:
            yield Finding(
                "batch_size", f"{self.batch_size} sentences for {self.gpus} GPUs", "Make it a multiple."
            )

    def steps(self, rows: int) -> int:
        """Optimiser steps over a corpus of ``rows`` sentences."""
        if self.max_steps is not None:
            return self.max_steps
        assert self.epochs is not None
        return self.epochs * batches(rows, self.batch_size, self.last_batch)

    def cycle(self, steps: int) -> int:
        """Steps of one schedule in a training of ``steps``."""
        return self.restart_every or steps

    def lr(self, step: int, steps: int) -> float:
        """Learning rate of ``step`` (from 1) of ``steps``.

        A warm-up of w steps has 1/w, 2/w, ..., 1 of the peak. ``get_scheduler`` of transformers has 0, 1/w, ...,
        (w - 1)/w: ASSUME: a first step at rate 0 trains nothing, so it is left out, and the rest of the warm-up is a
        step ahead. After the warm-up, and without one, as methods are trained here, the rates are those of
        transformers.
        """
        steps = self.cycle(steps)
        step = (step - 1) % steps + 1
        if step <= self.warmup_steps:
            return self.learning_rate * step / self.warmup_steps
        if self.schedule == "constant":
            return self.learning_rate
        left = (steps - step + 1) / (steps - self.warmup_steps)
        return self.learning_rate * (self.rate_at_end + (1 - self.rate_at_end) * left)


class TeacherEncoding(Settings):
    """How a teacher encodes a corpus for its students: section ``teacher`` of the configuration."""

    max_tokens: MaxTokens


class ContinueMlm(Settings):
    """Settings of ``continue_mlm``."""

    mlm_probability: float = Field(gt=0, lt=1, description="Fraction of tokens to predict; 0.15 in BERT.")
    seed: int = Field(ge=0, description="Seed for the order of sentences, the masks and the new head.")
    training: Training

    def conflicts(self) -> Iterator[Finding]:
        """Refuse several processes, chunks and patience."""
        if self.training.gpus > 1:
            yield Finding(
                "training.gpus",
                f"{self.training.gpus}; processes choose different numbers of tokens",
                "Set it to 1.",
            )
        if self.training.patience:
            yield Finding(
                "training.patience", f"{self.training.patience}, without a development set", "Leave it out."
            )
        if self.training.chunk:
            yield Finding(
                "training.chunk",
                f"{self.training.chunk}; no sentence is contrasted with others",
                "Leave it out, and lower batch_size.",
            )
