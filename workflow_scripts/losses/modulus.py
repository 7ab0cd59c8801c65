"""Constraint on the moduli of two tensors, and contrast over all views: the losses of JTCSE and TNCSE.

    L_TMC(h, h+) = |h - h+| / (|h| + |h+|)                                       (JTCSE, Eq. 1)
                 = sqrt(1 + k^2 - 2 k t) / (1 + k),  k = |h+| / |h|,  t = cos     (Eq. 5)
    L_TMC(h_I, h_II+) = -log sim(h_I^L, h_II^L+) L_TMC(h_I^P, h_II^P+)           (Eq. 13)
    L_NCE(x, y) over 2B views, without a row's own index among its candidates     (Eqs. 11 and 12)

Joint Tensor-Modulus Constraints and Cross-Attention, sections III-A and III-C. Where the text is ambiguous, this
follows the official code: candidates are all 2B - 1 other views (NT-Xent), also across sub-encoders; the modulus term
pairs the first view of one sub-encoder with the second view of the other.

Shape suffixes: R rows: B first views, then B second views; D width.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from workflow_scripts.losses.infonce import l2_normalize

SMALLEST_COSINE = 1e-4
"""Lower bound of cosines inside the logarithm, which limits the factor to 9.2103404.

The official code replaces only negative cosines by 1e-4. Between 0 and 1e-4 its factor grows without bound, and at 0
its loss is infinite. Here the factor is the same from 1e-4 down."""


def modulus_distance(left_BD: Tensor, right_BD: Tensor) -> Tensor:
    """Return L_TMC of each row (Eq. 1), shape (B), in [0, 1]."""
    apart_B, left_B, right_B = (x.norm(dim=-1) for x in (left_BD - right_BD, left_BD, right_BD))
    distance_B: Tensor = apart_B / (left_B + right_B)
    return distance_B


def modulus_constraint(
    last_BD: Tensor, last_plus_BD: Tensor, pooled_BD: Tensor, pooled_plus_BD: Tensor, *, weight: float
) -> Tensor:
    """Return the mean modulus distance of pooler outputs, weighted by minus the log cosine of last states (Eq. 13).

    Args:
        last_BD: [CLS] of the last layer, first view, one sub-encoder.
        last_plus_BD: The same, second view, other sub-encoder.
        pooled_BD: Vectors whose moduli are compared, first view, one sub-encoder.
        pooled_plus_BD: The same, second view, other sub-encoder.
        weight: Weight of the term; 0.5 in the official code, 1 in Eq. 13.
    """
    cosine_B = F.cosine_similarity(last_BD, last_plus_BD, dim=-1).clamp(min=SMALLEST_COSINE, max=1.0)
    term = (-cosine_B.log() * modulus_distance(pooled_BD, pooled_plus_BD)).mean()
    return weight * term


def contrast_views(
    rows_RD: Tensor, candidates_RD: Tensor, temperature: float, exchanged: Tensor | None = None
) -> Tensor:
    """Return NT-Xent: a row's positive is the other view of its sentence, among all views except that of its own index.

    With candidates from the same sub-encoder, this is L_NCE(h_i, h_i+); with candidates from the other one, it is a
    term of ICNCE (Eq. 12). If ``exchanged``, a single bool, is true, rows and candidates are swapped.
    """
    with torch.autocast(rows_RD.device.type, enabled=False):
        rows_RD, candidates_RD = l2_normalize(rows_RD), l2_normalize(candidates_RD)
        if exchanged is not None:
            one_RD, other_RD = rows_RD, candidates_RD
            rows_RD = torch.where(exchanged, other_RD, one_RD)
            candidates_RD = torch.where(exchanged, one_RD, other_RD)
        cosines_RR = rows_RD @ candidates_RD.T / temperature
    count = len(rows_RD)
    own_RR = torch.eye(count, dtype=torch.bool, device=rows_RD.device)
    partner_R = (torch.arange(count, device=rows_RD.device) + count // 2) % count
    return F.cross_entropy(cosines_RR.masked_fill(own_RR, -torch.inf), partner_R)
