"""What config/rates.yaml holds: the numbers by which a job graph is multiplied, each with where it comes from."""

from pathlib import Path
from typing import Literal

import yaml
from pydantic import Field

from workflow_scripts.config import Slice

BASES = ("assumed", "published", "measured", "arithmetic")
"""Where a number comes from, the least trustworthy first."""


class Rate(Slice):
    """One number and its origin."""

    value: float = Field(ge=0)
    basis: Literal["measured", "published", "arithmetic", "assumed"] = Field(
        description="assumed: nobody measured it; tables that rest on it say so."
    )
    source: str = Field(min_length=1, description="What measured it, who published it, or why it is assumed.")


class EncoderSize(Slice):
    """Size of a Transformer encoder."""

    layers: int = Field(gt=0)
    width: int = Field(gt=0)
    feed_forward: int = Field(gt=0, description="Multiply-accumulates of a token in a feed-forward layer.")
    parameters_millions: float = Field(gt=0, description="All of them; four bytes each are saved.")
    source: str = Field(min_length=1)

    def forward_flops(self, tokens: float) -> float:
        """Floating-point operations of one sentence's forward pass, two a multiply-accumulate.

        A layer over T tokens of width D takes 4 D^2 for queries, keys, values and output, and 2 T D to attend, a token.
        """
        return 2 * tokens * self.layers * (4 * self.width**2 + self.feed_forward + 2 * tokens * self.width)


class Rates(Slice):
    """The whole file."""

    gpu_tflops: Rate = Field(
        description="Sustained by one GPU while it trains, in 10^12 operations a second."
    )
    filled: Rate = Field(
        description="Length of a batch's sentences, padding included, by the training's max_tokens."
    )
    encoders: dict[str, EncoderSize]
    rows: dict[str, Rate] = Field(
        description="Rows of datasets whose contract gives none, or only the least."
    )
    step_cost: dict[str, Rate] = Field(
        description="By module of a method: its step in SimCSE steps of that batch."
    )
    readout_cost: dict[str, Rate] = Field(description="By kind of readout: a step with it, by one without.")
    kilobytes: dict[str, Rate] = Field(description="By rule: all files that one job leaves, but for models.")
    bytes_per_row: dict[str, Rate] = Field(description="By rule, where files grow with the text.")
    characters_per_token: Rate = Field(description="Of a language model's prompts and completions.")


def read_rates(path: Path) -> Rates:
    """Read the file.

    Raises:
        ConfigError: naming the first entry that is wrong.
    """
    return Rates.parse(yaml.safe_load(path.read_text("utf-8")), path.name)
