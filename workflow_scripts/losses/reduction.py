"""Redundant dimensions: which dimensions of a batch tell little, and taking redundancy away from them.

    sigma_d = sqrt(sum_j (h_j,d - u_d)^2 / N),   S = {d : sigma_d < c}          (3R, Eq. 3 and section 3.2)
    h^_d = h_d - hbar_d where d is in S, h_d elsewhere                           (3R, Eq. 5)

3R: Enhancing Sentence Representation Learning via Redundant Representation Reduction, section 3.

The rule sigma < c is a step, so the threshold c gets no gradient from it, and the paper names no other.
Three ways to learn it all the same, or not:

* ``straight_through`` (the default): S is as printed, and c learns as if membership were
  sigmoid((c - sigma) / T). Only c does: the deviations are held fixed there, so that the encoder's
  gradient is that of Eq. 5 as printed, and with c = 0 that of the method underneath, to the bit.
* ``soft``: membership is that sigmoid, forward as well; the encoder learns through sigma too.
* ``frozen``: c stays where it starts (3R, Table 8).

Shape suffixes: V views, B sentences, D width.
"""

from typing import Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from workflow_scripts.config import Slice


class ThresholdConfig(Slice):
    """The threshold c."""

    surrogate: Literal["straight_through", "soft", "frozen"] = Field(description="How c gets a gradient.")
    start: float | None = Field(
        ge=0, description="First value; null draws it from U(0, 1) by the run's seed."
    )
    temperature: float = Field(gt=0, description="T of the surrogate, on the scale of the deviations.")
    learning_rate: float = Field(ge=0, lt=1, description="Peak of c's own rate; 0 where c is frozen.")

    @model_validator(mode="after")
    def _frozen_does_not_learn(self) -> "ThresholdConfig":
        if (self.surrogate == "frozen") != (self.learning_rate == 0):
            raise ValueError("a frozen threshold has learning_rate 0, and no other has")
        return self


class Threshold(nn.Module):
    """Membership of each dimension in S."""

    def __init__(self, config: ThresholdConfig, start: float) -> None:
        super().__init__()
        self._config = config
        self.c = nn.Parameter(torch.tensor(start), requires_grad=config.surrogate != "frozen")

    def clamp(self) -> None:
        """Take c back to 0 where a step took it below: no deviation is negative."""
        with torch.no_grad():
            self.c.clamp_(min=0)

    def forward(self, deviation_D: Tensor) -> Tensor:
        """1 for a dimension in S, 0 for others, between them for ``soft``; shape (D)."""
        hard_D = (deviation_D < self.c).to(deviation_D.dtype)
        match self._config.surrogate:
            case "frozen":
                return hard_D
            case "soft":
                return torch.sigmoid((self.c - deviation_D) / self._config.temperature)
            case "straight_through":
                soft_D = torch.sigmoid((self.c - deviation_D.detach()) / self._config.temperature)
                return hard_D + (soft_D - soft_D.detach())  # the bracket is 0, and has a gradient


def deviation(rows_BD: Tensor) -> Tensor:
    """Population standard deviation of each dimension (3R, Eq. 3, divides by N), shape (D)."""
    return rows_BD.std(dim=0, correction=0)


def reduce(views_VBD: Tensor, redundant_D: Tensor | None, member_D: Tensor) -> Tensor:
    """Take redundancy away from the dimensions in S (3R, Eq. 5).

    Args:
        views_VBD: Every vector that enters the loss.
        redundant_D: The redundant vector; None takes each vector's own value away, which leaves 0 there
            (3R, section 5.3, "dynamic mask").
        member_D: Membership in S.
    """
    return views_VBD - member_D * (views_VBD if redundant_D is None else redundant_D)
