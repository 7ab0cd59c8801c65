"""Contrastive loss over a batch with in-batch negatives.

    l_i = -log exp(cos(z_i, z'_i) / t) / sum_j exp(cos(z_i, z'_j) / t)          (Gao et al. 2021, Eq. 4)

SimCSE: Simple Contrastive Learning of Sentence Embeddings, https://arxiv.org/abs/2104.08821. Each sentence has N - 1
negatives, as in the official code, where 2N - 2 made no difference (issue 11 there). The loss equals
MultipleNegativesRankingLoss of sentence-transformers with scale 1/t.

Shape suffixes: B sentences, C candidates, D width.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor


def cos_sim(left_BD: Tensor, right_CD: Tensor) -> Tensor:
    """Return the cosine of every pair, (B, C), never in bfloat16: a temperature of 0.05 multiplies its error by 20."""
    with torch.autocast(left_BD.device.type, enabled=False):
        return l2_normalize(left_BD) @ l2_normalize(right_CD).T


def l2_normalize(vectors_xD: Tensor) -> Tensor:
    """Return vectors scaled to length 1, never in bfloat16."""
    exact = torch.promote_types(vectors_xD.dtype, torch.float32)
    return F.normalize(vectors_xD.to(exact), dim=-1)


def infonce(anchors_BD: Tensor, positives_BD: Tensor, temperature: float) -> Tensor:
    """Return the mean loss of the batch, a scalar, for at least two rows: a single row has no negatives."""
    logits_BB = cos_sim(anchors_BD, positives_BD) / temperature
    return F.cross_entropy(logits_BB, torch.arange(len(logits_BB), device=logits_BB.device))


def infonce_with_negatives(
    anchors_BD: Tensor, positives_BD: Tensor, negatives_BD: Tensor, temperature: float, own_weight: float
) -> Tensor:
    """Return the mean loss of a batch of triples: all positives and hard negatives of the batch are candidates.

        l_i = -log exp(cos(h_i, h+_i) / t) / sum_j (exp(cos(h_i, h+_j) / t) + w_ij exp(cos(h_i, h-_j) / t))

    Gao et al. 2021, Eq. 5 and appendix; LayerAttPooler, Eq. 8.

    Args:
        anchors_BD: Premises.
        positives_BD: Sentences that they entail.
        negatives_BD: Sentences that they contradict.
        temperature: Softmax temperature.
        own_weight: log w_ii, added to the logit of a row's own hard negative; w_ij is 1 for i != j. 0 in SimCSE,
            1 in LayerAttPooler's code.
    """
    against_positives_BB = cos_sim(anchors_BD, positives_BD) / temperature
    against_negatives_BB = cos_sim(anchors_BD, negatives_BD) / temperature
    own_BB = own_weight * torch.eye(len(anchors_BD), device=anchors_BD.device)
    logits_BC = torch.cat([against_positives_BB, against_negatives_BB + own_BB], dim=1)
    return F.cross_entropy(logits_BC, torch.arange(len(logits_BC), device=logits_BC.device))
