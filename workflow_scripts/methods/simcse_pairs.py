"""SimCSE on pairs: a sentence's positive is its partner in the corpus, such as its round-trip translation.

EDFSE and the sub-encoders of TNCSE and JTCSE (their first stage): the loss and head of unsupervised SimCSE, the
second view made of another text. Both texts are seen under dropout and go through the encoder in one call.
A corpus of the form sentences, round trips alone or beside what they came from, is for ``simcse`` itself.
"""

import torch
from torch import Tensor

from workflow_scripts.methods import simcse
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.tokens import TokenisedText
from workflow_scripts.settings.methods.simcse_pairs import Config
from workflow_scripts.training.contrastive import build, overrides, rows_of_all
from workflow_scripts.training.data import TrainingData
from workflow_scripts.training.ranks import gathered

__all__ = ["Config", "Objective", "build", "overrides"]


class Objective(simcse.Objective):
    """SimCSE's loss on a corpus of triples, whose negatives are not read."""

    def __init__(self, config: Config, encoder: SentenceEncoder, data: TrainingData) -> None:
        super().__init__(config, encoder, data)
        self._pairs = TokenisedText.joined([self._text, data.tokenised("positive")])

    def views(self, step: int) -> Tensor:
        """The step's sentences and their partners before the head, shape (2, B, D)."""
        rows = rows_of_all(self._sampler.rows_of(step), 2, len(self._pairs))
        batch = self._pairs.batch(rows).to(self.encoder.device)
        views = self.encoder.read(batch).chunk(2)
        return torch.stack([gathered(view_BD) for view_BD in views])
