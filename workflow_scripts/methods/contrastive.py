"""Common parts of methods that contrast views of sentences: the encoder, and the vectors of a step."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from workflow_scripts.errors import ConfigError
from workflow_scripts.losses.infonce import infonce
from workflow_scripts.models.backbone import check_fit, dropout_rates
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.tokens import TokenBatch, TokenisedText
from workflow_scripts.settings.methods import Contrastive
from workflow_scripts.settings.names import Template
from workflow_scripts.training import objective
from workflow_scripts.training.chunks import in_chunks
from workflow_scripts.training.data import TrainingData
from workflow_scripts.training.ranks import gathered


def build(
    config: Contrastive,
    tokenizer: PreTrainedTokenizerBase,
    backbone: PreTrainedModel,
    template: Template | None = None,
    *,
    head: bool = True,
) -> SentenceEncoder:
    """Return the encoder to train, evaluate and save; ``head`` is false for methods with their own projector.

    Raises:
        ConfigError: if the encoder does not fit the settings, for example because it has no dropout.
    """
    check_fit(config.size_errors, backbone)
    if config.dropout is None and not any(dropout_rates(backbone)):
        raise ConfigError(
            "method.dropout: null, but the encoder has no dropout of its own. Set it to a number, such "
            "as 0.1."
        )
    return SentenceEncoder(
        backbone,
        tokenizer,
        config.readout,
        head=head and config.readout.has_head,
        head_at_test=config.head_at_test,
        template=template,
    )


class Objective(objective.Objective):
    """Contrast between views of a step's sentences: the columns of the method, or a single one twice.

    The loss has two halves, ``views`` and ``contrast``, between which another method (``three_r``) can change vectors.
    """

    reads_once = True
    """Whether ``views`` encodes ``inputs`` once and unchanged, which lets other sentences join the same pass."""

    def __init__(self, config: Contrastive, encoder: SentenceEncoder, data: TrainingData) -> None:
        self.module = self.encoder = encoder
        self._temperature = config.temperature
        self.ready = data.ready
        self._sampler = data.sampler
        texts = self.texts(config, data)
        self._views = [*texts] * 2 if len(texts) == 1 else texts

    def texts(self, config: Any, data: TrainingData) -> Sequence[TokenisedText]:
        """Return the texts of each view, all of the same length and in the same order."""
        return [data.tokenised(column) for column in config.read_columns]

    def inputs(self, step: int) -> Any:
        """Return the step's sentences in chunks."""
        return self.ready(self.batch(step))

    def loss(self, inputs: Any) -> objective.LossOutput:
        """Return the contrastive loss of the step's views after the head."""
        return objective.LossOutput(self.contrast(self.encoder.project(self.views(inputs))))

    def batch(self, step: int) -> TokenBatch:
        """Return the step's sentences on the host, one view after the other."""
        rows = self._sampler.rows_of(step)
        batches = [text.batch(rows) for text in self._views]
        return TokenBatch.joined(batches, self._views[0].pad_id)

    def views(self, inputs: Any) -> Tensor:
        """Return the step's vectors before the head, of all processes, (V, B, R), in the order of the views."""
        return self.gather_processes(self.read(inputs))

    def read(self, chunks: Sequence[TokenBatch]) -> Tensor:
        """Return vectors before the head, (B, R), of the sentences of all chunks."""
        return in_chunks(self.encoder.read, chunks)

    def gather_processes(self, vectors_xR: Tensor) -> Tensor:
        """Return the views of all processes: (V * b, R) of this process become (V, B, R)."""
        return torch.stack([gathered(view_BR) for view_BR in vectors_xR.chunk(len(self._views))])

    def contrast(self, views_VBD: Tensor) -> Tensor:
        """Return the contrastive loss of two views after the head, a scalar."""
        first_BD, second_BD = views_VBD
        return infonce(first_BD, second_BD, self._temperature)
