"""Finished runs added up: untrained twins, EDFSE's six encoders, fusions with a published checkpoint (+UC).

    h = sum_i w_i h_i

EDFSE (Zong and Zhang 2023) adds up six encoders. TNCSE and JTCSE fuse a twin, itself a sum, with InfoCSE:
(1 - w)(h_I + h_II) + w h_InfoCSE, w = 0.7 on BERT and 0.75 on RoBERTa (official code), which is the weights
[0.3, 0.7] over the runs [twin, InfoCSE]. All towers must read the same tokens.

Expected: EDFSE-BERT 79.04 over seven STS tasks, JTCSE-BERT + UC 80.60 (JTCSE, Table I).
"""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from workflow_scripts.config import Slice
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.ensemble import Ensemble


class Config(Slice):
    """Settings of an ensemble."""

    module: Literal["ensemble"]
    weights: tuple[float, ...] | None = Field(description="Of the runs, in their order; null: 1 each.")


def build(config: Config, towers: Sequence[SentenceEncoder | Ensemble]) -> Ensemble:
    """Add up the encoders of finished runs."""
    return Ensemble(towers, config.weights if config.weights is not None else (1.0,) * len(towers))
