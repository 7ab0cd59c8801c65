"""Blocks of the study."""

from typing import Literal

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.names import Postprocessed, Represented, Weighted

Kind = Literal["sts", "clustering", "transfer", "geometry", "isotropy"]


class Block(Settings):
    """Every combination of the lists, scored by some kinds of evaluation."""

    kinds: list[Kind] = Field(min_length=1, description="isotropy is the IsoScore of Wikitext's sentences.")
    representations: list[Represented] = Field(min_length=1)
    mixing_weights: list[float] = Field(
        min_length=1, description="w of Equation 10: 0 for contextual states alone, 1 for static averages."
    )
    layers: list[str] = Field(
        min_length=1, description="static, 0, 1, ..., last, sums such as 1+last; each: all."
    )
    weightings: list[Weighted] = Field(min_length=1)
    postprocessings: list[Postprocessed] = Field(min_length=1)
