"""Sums of finished runs: frozen twins, EDFSE's six encoders, fusions with a published checkpoint (+UC).

    h = sum_i w_i h_i

EDFSE (Zong and Zhang 2023) adds up six encoders. TNCSE and JTCSE fuse a twin, itself a sum, with InfoCSE:
(1 - w)(h_I + h_II) + w h_InfoCSE, which is the weights [1 - w, w] over the runs [twin, InfoCSE]. JTCSE's code has
w = 0.7 on both backbones, TNCSE's 0.7 on BERT and 0.75 on RoBERTa (reading ``tncse``). On RoBERTa the twin and
InfoCSE, a BERT, read the tokens of their own tokenisers, as in both codes.

Expected: EDFSE-BERT 79.04 over seven STS tasks, JTCSE-BERT + UC 80.60 (JTCSE, Table I).
"""

from collections.abc import Sequence

from workflow_scripts.models.ensemble import EnsembleEncoder
from workflow_scripts.models.text_encoder import TextEncoder
from workflow_scripts.settings.methods import Ensemble as Config


def build(config: Config, encoders: Sequence[TextEncoder]) -> EnsembleEncoder:
    """Return the sum of the encoders of finished runs, each with its tokeniser."""
    weights = config.weights if config.weights is not None else (1.0,) * len(encoders)
    return EnsembleEncoder(encoders, weights)
