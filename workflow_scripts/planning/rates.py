"""The contents of config/rates.yaml: the numbers by which a job graph is multiplied, each with its origin."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.yaml_files import read_yaml

BASES = ("assumed", "published", "measured", "arithmetic")
"""Kinds of origin of a number, the least trustworthy first."""


class Rate(Settings):
    """One number and its origin."""

    value: float = Field(ge=0)
    basis: Literal["measured", "published", "arithmetic", "assumed"] = Field(
        description="assumed: not measured; tables that use the number say so."
    )
    source: str = Field(
        min_length=1, description="How it was measured, who published it, or why it is assumed."
    )


class EncoderSize(Settings):
    """Size of a Transformer encoder."""

    layers: int = Field(gt=0)
    width: int = Field(gt=0)
    feed_forward: int = Field(
        gt=0, description="Multiply-accumulate operations per token in a feed-forward layer."
    )
    parameters_millions: float = Field(gt=0, description="All parameters; each is saved in four bytes.")
    source: str = Field(min_length=1)

    def forward_flops(self, tokens: float) -> float:
        """Floating-point operations of one sentence's forward pass, two per multiply-accumulate.

        For each token, a layer takes 4 D^2 for queries, keys, values and output, and 2 T D for attention over T tokens.
        """
        return forward_flops(tokens, self.layers, self.width, self.feed_forward)


def forward_flops(tokens: float, layers: int, width: int, feed_forward: int) -> float:
    """``EncoderSize.forward_flops`` of an encoder that config/rates.yaml may not list."""
    return 2 * tokens * layers * (4 * width**2 + feed_forward + 2 * tokens * width)


class Rates(Settings):
    """The whole file."""

    gpu_tflops: Rate = Field(
        description="Sustained speed of one GPU in training, in 10^12 operations per second."
    )
    gpu_encoding_tflops: Rate = Field(description="The same where runs are evaluated, in float32.")
    row_tokens: dict[str, Rate] = Field(
        description="Tokens of a row of a dataset, by its name or else its form, all its texts together."
    )
    list_tokens: dict[str, Rate] = Field(description="Tokens of all texts, by list of config/mteb.yaml.")
    filled: Rate = Field(
        description="Length of a batch's sentences, padding included, divided by the training's max_tokens."
    )
    encoders: dict[str, EncoderSize]
    rows: dict[str, Rate] = Field(
        description="Rows of datasets whose contract gives no number, or only a minimum."
    )
    step_cost: dict[str, Rate] = Field(
        description="By module of a method: cost of a step in SimCSE steps with the same batch."
    )
    readout_cost: dict[str, Rate] = Field(
        description="By kind of readout: cost of a step relative to one with pooling."
    )
    kilobytes: dict[str, Rate] = Field(description="By rule: size of all outputs of a job, except models.")
    bytes_per_row: dict[str, Rate] = Field(description="By rule, where outputs grow with the text.")
    characters_per_token: Rate = Field(description="In a language model's prompts and completions.")


def rows_of(name: str, contract: Mapping[str, Any], rates: Rates) -> Rate | None:
    """Rows of a dataset, by its rate or else by its contract; None if neither says."""
    if name in rates.rows:
        return rates.rows[name]
    rows = contract.get("rows", contract.get("min_rows"))
    return Rate(value=rows, basis="published", source=f"contract of datasets.{name}") if rows else None


@cache
def read_rates(path: Path) -> Rates:
    """Read the file.

    Raises:
        ConfigError: if it cannot be read, or naming the first entry that is wrong.
    """
    if not path.is_file():
        raise ConfigError(f"{path}: no such file. Name one that is written as config/rates.yaml is.")
    return Rates.parse(read_yaml(path), path.name)
