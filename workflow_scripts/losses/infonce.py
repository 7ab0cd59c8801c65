"""Contrastive loss over a batch with in-batch negatives.

    l_i = -log exp(cos(z_i, z'_i) / t) / sum_j exp(cos(z_i, z'_j) / t)          (Gao et al. 2021, Eq. 4)

SimCSE: Simple Contrastive Learning of Sentence Embeddings, https://arxiv.org/abs/2104.08821. N - 1
negatives a sentence, as in the official code; 2N - 2 made no difference there (issue 11). It equals
sentence-transformers' MultipleNegativesRankingLoss with scale 1/t.

Shape suffixes: B sentences, D width.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor


def cosine_matrix(left_BD: Tensor, right_CD: Tensor) -> Tensor:
    """Cosine of every pair, shape (B, C)."""
    return F.normalize(left_BD, dim=-1) @ F.normalize(right_CD, dim=-1).T


def infonce(anchors_BD: Tensor, positives_BD: Tensor, temperature: float) -> Tensor:
    """Mean loss of the batch, a scalar; needs at least two rows, since one has no negative."""
    logits_BB = cosine_matrix(anchors_BD, positives_BD) / temperature
    return F.cross_entropy(logits_BB, torch.arange(len(logits_BB), device=logits_BB.device))
