"""Settings of config/rates.yaml: speeds, sizes and costs that estimates rest on, each with its origin."""

from typing import Literal

from pydantic import Field

from workflow_scripts.config import Settings


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
        return 2 * tokens * self.layers * (4 * self.width**2 + self.feed_forward + 2 * tokens * self.width)


class Rates(Settings):
    """The whole file."""

    gpu_tflops: Rate = Field(
        description="Sustained speed of one GPU in training, in 10^12 operations per second."
    )
    gpu_encoding_tflops: Rate = Field(description="The same where runs are evaluated, in float32.")
    hours: dict[str, Rate] = Field(description="By rule: GPU hours of a job, where they are few.")
    list_tokens: dict[str, Rate] = Field(description="Tokens of all texts, by list of config/mteb.yaml.")
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
