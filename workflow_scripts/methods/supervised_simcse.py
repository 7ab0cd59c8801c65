"""Supervised SimCSE: a premise's entailed sentence is its positive, its contradiction is its hard negative.

Gao et al. 2021, https://arxiv.org/abs/2104.08821, section 4. All sentences of a step go through the encoder in one
call. Without hard negatives it is the supervised loss with only in-batch negatives (LayerAttPooler, Eq. 6); with the
readout ``layer_attention`` the two are LayerAttPooler's Equations 8 and 6.

Without hard negatives, pairs need not be of NLI. EDFSE and the sub-encoders of TNCSE and JTCSE (their first stage)
have the loss and head of unsupervised SimCSE, with a round-trip translation as the second view. For a corpus of the
form sentences, round trips with or without their originals, use ``simcse``.

Expected: BERT-base on 275,601 NLI triples, three epochs of batches of 512, seven STS tasks: 81.57.
"""

from torch import Tensor

from workflow_scripts.losses.infonce import infonce_with_negatives
from workflow_scripts.methods import contrastive
from workflow_scripts.methods.contrastive import build as build
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.settings.methods import SupervisedSimCSE as Config
from workflow_scripts.training.data import TrainingData


class Objective(contrastive.Objective):
    """Contrast of a step's anchors with its positives and hard negatives; for a corpus of triples, or of pairs."""

    def __init__(self, config: Config, encoder: SentenceEncoder, data: TrainingData) -> None:
        super().__init__(config, encoder, data)
        self._weight = config.hard_negative_weight

    def contrast(self, views_VBD: Tensor) -> Tensor:
        """Return the contrastive loss of anchors, positives and, if the corpus has any, hard negatives, a scalar."""
        if len(views_VBD) == 2:
            return super().contrast(views_VBD)
        anchors_BD, positives_BD, negatives_BD = views_VBD
        return infonce_with_negatives(anchors_BD, positives_BD, negatives_BD, self._temperature, self._weight)
