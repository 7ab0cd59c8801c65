"""Settings of masked-language-model training."""

from collections.abc import Iterator

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.training import Training


class ContinueMlm(Settings):
    """Settings of ``continue_mlm``."""

    mlm_probability: float = Field(gt=0, lt=1, description="Fraction of tokens to predict; 0.15 in BERT.")
    seed: int = Field(ge=0, description="Seed for the order of sentences, the masks and the new head.")
    training: Training

    def conflicts(self) -> Iterator[str]:
        """It is trained by one process, and on whole batches."""
        if self.training.gpus > 1:
            found = f"{self.training.gpus}; processes choose different numbers of tokens"
            yield f"training.gpus: {found}. Set it to 1."
        if self.training.chunk:
            found = f"{self.training.chunk}; no sentence is contrasted with others. Leave it out, and lower batch_size"
            yield f"training.chunk: {found}."


class Sizes(Settings):
    """Sizes of an encoder that starts from random weights."""

    layers: int = Field(gt=0)
    width: int = Field(gt=0, description="Of the hidden states; a multiple of the heads.")
    heads: int = Field(gt=0, description="Of attention, each of width divided by their number.")
    feed_forward: int = Field(gt=0, description="Width within a layer's feed-forward part.")

    def conflicts(self) -> Iterator[str]:
        """The heads share the width."""
        if self.width % self.heads:
            yield f"width: {self.width} is no multiple of the {self.heads} heads. Make it one."
