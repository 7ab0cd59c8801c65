"""Settings of LLM2Vec."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field

from workflow_scripts.settings.contrastive import Contrastive
from workflow_scripts.settings.start import Start


class Config(Contrastive):
    """Settings of LLM2Vec."""

    module: Literal["llm2vec"]
    bidirectional: bool = Field(description="Whether tokens attend to those after them.")
    lora_rank: int = Field(gt=0, description="Rank r of the adapters.")
    lora_alpha: int = Field(gt=0, description="Their scale is alpha / r.")
    lora_dropout: float = Field(ge=0, lt=1, description="Of the adapters' inputs.")
    weights: Literal["float32", "bfloat16"] = Field(
        description="Precision of the frozen weights, and of the model that is saved."
    )

    @property
    def overrides(self) -> Mapping[str, Any]:
        """The dropout, and the precision of the frozen weights."""
        return {**super().overrides, "dtype": self.weights}

    def misfits(self, start: Start) -> Iterator[str]:
        """What is read is the decoder as it attends here."""
        sizes = [size._replace(causal=not self.bidirectional) for size in start.sizes]
        return super().misfits(start._replace(sizes=sizes))
