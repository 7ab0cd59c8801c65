"""Distillation of a twin or an ensemble into one encoder.

    L = mean (h_student - h_teacher)^2

EDFSE, TNCSE and JTCSE ("D"): mean squared error to the teacher's vector, which is the sum over its encoders;
``target: mean`` divides it by their number. The papers' scripts are not public; the supplement of TNCSE gives
rate 1e-5 and batch size 64 on BERT. The teacher's vectors are read from a file that was made once for the
corpus (rule encode_teacher), so a step costs one forward pass of the student, without a second view.

Expected: JTCSE D on BERT-base 79.89 over seven STS tasks, 0.19 above its teacher (JTCSE, Table I).
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from workflow_scripts.errors import ConfigError
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.tokens import TokenBatch
from workflow_scripts.settings.methods import Distil as Config
from workflow_scripts.training import objective
from workflow_scripts.training.chunks import in_chunks
from workflow_scripts.training.data import TrainingData
from workflow_scripts.training.ranks import gathered


def build(config: Config, tokenizer: PreTrainedTokenizerBase, backbone: PreTrainedModel) -> SentenceEncoder:
    """Return the student: the encoder to train, evaluate and save."""
    return SentenceEncoder(backbone, tokenizer, config.readout, head=False, head_at_test=False)


class Objective(objective.Objective):
    """Distance to the teacher, on a corpus of sentences that it has encoded."""

    module: SentenceEncoder

    def __init__(self, config: Config, encoder: SentenceEncoder, data: TrainingData) -> None:
        self.module = encoder
        self._text = data.tokenised("anchor")
        self._sampler = data.sampler
        self._ready = data.ready
        assert data.teacher is not None  # an input of the rule
        if data.teacher.vectors.shape[1] != encoder.width:
            raise ConfigError(
                f"runs: the teacher's vectors have {data.teacher.vectors.shape[1]} entries, the "
                f"student's {encoder.width}. Choose an encoder of width {data.teacher.vectors.shape[1]}."
            )
        self._vectors = data.teacher.vectors
        self._divisor = data.teacher.encoders if config.target == "mean" else 1

    def inputs(self, step: int) -> tuple[tuple[TokenBatch, ...], Tensor]:
        """Return the step's sentences in chunks, and their vectors by the teacher, (B, D)."""
        rows = self._sampler.rows_of(step)
        return self._ready(self._text.batch(rows)), torch.from_numpy(self._vectors[rows])

    def loss(self, inputs: tuple[tuple[TokenBatch, ...], Tensor]) -> objective.LossOutput:
        """Return the squared distance of the student's vectors to the teacher's, mean over entries."""
        chunks, target_BD = inputs
        student_BD = gathered(in_chunks(lambda chunk: self.module(*chunk), chunks))
        return objective.LossOutput(F.mse_loss(student_BD, gathered(target_BD / self._divisor)))
