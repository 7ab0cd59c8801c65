"""Redundant dimensions: find the dimensions with little variation in a batch, and subtract redundancy from them.

    sigma_d = sqrt(sum_j (h_j,d - u_d)^2 / N),   S = {d : sigma_d < c}          (3R, Eq. 3 and section 3.2)
    h^_d = h_d - hbar_d if d is in S, else h_d                                   (3R, Eq. 5)

3R: Enhancing Sentence Representation Learning via Redundant Representation Reduction, section 3. The rule sigma < c is
a step function, so the threshold c has no gradient, and the paper does not say how it is learnt. There are three ways
to treat it:

* ``straight_through`` (the default): S is as in the paper, and c learns as if membership were
  sigmoid((c - sigma) / T). Deviations are constants in this term, so the encoder's gradient is that of Eq. 5 as
  printed, and with c = 0 that of the base method. ASSUME: the sigmoid's slopes are divided by the largest
  of them, because in the paper's table 7 c falls from 1 from its first step on. Undivided, the slope is 1e-7 for c = 1
  and a deviation of .05, and c would stay: float32 rounds such slopes to 0, or AdamW's eps outweighs them. A factor
  that all dimensions share changes no other step of AdamW.
* ``soft``: membership is that sigmoid in the forward pass as well; the encoder also learns through sigma.
* ``frozen``: c keeps its first value (3R, Table 8).

Shape suffixes: V views, B sentences, D width.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from workflow_scripts.settings.methods import ThresholdConfig


class Threshold(nn.Module):
    """Module that computes the membership of each dimension in S."""

    def __init__(self, config: ThresholdConfig, start: float) -> None:
        super().__init__()
        self._config = config
        self.c = nn.Parameter(torch.tensor(start), requires_grad=config.surrogate != "frozen")

    def clamp(self) -> None:
        """Set c to 0 if a step made it negative: no deviation is negative."""
        with torch.no_grad():
            self.c.clamp_(min=0)

    def forward(self, deviation_D: Tensor) -> Tensor:
        """Return the membership of each dimension, shape (D): 1 in S and 0 elsewhere; in between for ``soft``."""
        hard_D = (deviation_D < self.c).to(deviation_D.dtype)
        match self._config.surrogate:
            case "frozen":
                return hard_D
            case "soft":
                return torch.sigmoid((self.c - deviation_D) / self._config.temperature)
            case "straight_through":
                distance_D = (self.c.detach() - deviation_D.detach()) / self._config.temperature
                log_slope_D = F.logsigmoid(distance_D) + F.logsigmoid(-distance_D)
                slope_D = (log_slope_D - log_slope_D.max()).exp()
                return hard_D + slope_D * (self.c - self.c.detach())  # the bracket is 0, and has a gradient


def deviation(rows_BD: Tensor) -> Tensor:
    """Return the population standard deviation of each dimension (3R, Eq. 3, divides by N), shape (D)."""
    return rows_BD.std(dim=0, correction=0)


def reduce(views_VBD: Tensor, redundant_D: Tensor | None, member_D: Tensor) -> Tensor:
    """Return vectors after subtraction of redundancy from the dimensions in S (3R, Eq. 5).

    Args:
        views_VBD: All vectors of the loss.
        redundant_D: The redundant vector; None subtracts each vector from itself, which leaves 0 (3R, section 5.3,
            "dynamic mask").
        member_D: Membership in S.
    """
    return views_VBD - member_D * (views_VBD if redundant_D is None else redundant_D)
