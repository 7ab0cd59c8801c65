"""Settings of DiffCSE."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

from pydantic import Field

from workflow_scripts.settings.contrastive import Contrastive
from workflow_scripts.settings.start import Start


class Config(Contrastive):
    """Settings of DiffCSE."""

    reducible: ClassVar[bool] = False

    module: Literal["diffcse"]
    mlm_probability: float = Field(gt=0, lt=1, description="Of the tokens, masked for the generator.")
    masking: Literal["bert", "mask"] = Field(
        description="What chosen tokens become: 80% [MASK], 10% random and 10% unchanged, or all [MASK]."
    )
    filled: Literal["all", "chosen"] = Field(
        description="Tokens that the generator rewrites: all but [CLS], as in the code, or the chosen ones."
    )
    generator_dropout: bool = Field(description="Whether the generator drops out as while training.")
    weight: float = Field(gt=0, description="lambda, of the loss of replaced tokens.")
    projector: Literal["head", "batch_norm"] = Field(
        description="On top of the vector while training: SimCSE's MLP, or two layers with BatchNorm."
    )

    @property
    def labels(self) -> Sequence[str]:
        """The generator's, and the readout's."""
        return [*self.readout.labels, "the base encoder itself stands in for DiffCSE's generator, DistilBERT"]

    @property
    def keeps_contrasted(self) -> bool:
        """Not where a projector is thrown away."""
        return super().keeps_contrasted and self.projector == "head"

    def conflicts(self) -> Iterator[str]:
        """An embedding has no BatchNorm."""
        yield from super().conflicts()
        if self.projector == "batch_norm" and self.head_at_test:
            yield "projector: batch_norm is no part of an embedding. Set head_at_test: false."

    def unchunkable(self, start: Start) -> Iterator[str]:
        """Its discriminator reads every token again."""
        found = "diffcse's discriminator reads the batch again"
        yield f"training.chunk: {found}. Leave it out."
