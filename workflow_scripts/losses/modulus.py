"""Constraint on the moduli of two tensors, and contrast over all views: the losses of JTCSE and TNCSE.

    L_TMC(h, h+) = |h - h+| / (|h| + |h+|)                                       (JTCSE, Eq. 1)
                 = sqrt(1 + k^2 - 2 k t) / (1 + k),  k = |h+| / |h|,  t = cos     (Eq. 5)
    L_TMC(h_I, h_II+) = -log sim(h_I^L, h_II^L+) L_TMC(h_I^P, h_II^P+)           (Eq. 13)
    L_NCE(x, y) over 2B views, a row's own index left out of its candidates       (Eqs. 11 and 12)

Joint Tensor-Modulus Constraints and Cross-Attention, sections III-A and III-C. What the text leaves open is
taken from the official code: candidates are all 2B - 1 other views (NT-Xent), across towers too; the modulus
term pairs the first view of one tower with the second of the other.

Shape suffixes: R rows: B first views, then B second views; D width.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from workflow_scripts.losses.infonce import cosine_matrix

SMALLEST_COSINE = 1e-4
"""Smaller and negative cosines count as this one in the logarithm: 9.2103404 at most (official code)."""


def modulus_distance(left_BD: Tensor, right_BD: Tensor) -> Tensor:
    """L_TMC of each row (Eq. 1), shape (B), in [0, 1]."""
    apart_B, left_B, right_B = (x.norm(dim=-1) for x in (left_BD - right_BD, left_BD, right_BD))
    distance_B: Tensor = apart_B / (left_B + right_B)
    return distance_B


def modulus_constraint(
    last_BD: Tensor, last_plus_BD: Tensor, pooled_BD: Tensor, pooled_plus_BD: Tensor, *, halved: bool
) -> Tensor:
    """Mean modulus distance of pooler outputs, weighted by how far the last states' directions are (Eq. 13).

    Args:
        last_BD: [CLS] of the last layer, first view, one tower.
        last_plus_BD: The same, second view, other tower.
        pooled_BD: What the modulus is taken of, first view, one tower.
        pooled_plus_BD: The same, second view, other tower.
        halved: Whether the term is halved, as in the official code; Eq. 13 does not.
    """
    cosine_B = F.cosine_similarity(last_BD, last_plus_BD, dim=-1).clamp(min=SMALLEST_COSINE, max=1.0)
    term = (-cosine_B.log() * modulus_distance(pooled_BD, pooled_plus_BD)).mean()
    return term / 2 if halved else term


def contrast_views(rows_RD: Tensor, candidates_RD: Tensor, temperature: float) -> Tensor:
    """NT-Xent: each row against the other view of its sentence among all views but that of its own index.

    With ``candidates_RD`` those of the same tower this is L_NCE(h_i, h_i+), with another tower's a term of
    ICNCE (Eq. 12).
    """
    cosines_RR = cosine_matrix(rows_RD, candidates_RD) / temperature
    count = len(rows_RD)
    own_RR = torch.eye(count, dtype=torch.bool, device=rows_RD.device)
    partner_R = (torch.arange(count, device=rows_RD.device) + count // 2) % count
    return F.cross_entropy(cosines_RR.masked_fill(own_RR, -torch.inf), partner_R)
