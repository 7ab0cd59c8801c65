"""LLM2Vec's contrastive stage: SimCSE on a decoder that attends both ways, through low-rank adapters.

BehnamGhader et al. 2024, https://arxiv.org/abs/2404.05961: bidirectional attention, mean pooling, LoRA on every
projection, dropout 0.3 of the attention weights for the two views, 1,000 steps of 128 sentences at 3e-5. What
comes before it there, adaptation by masked next-token prediction, is the checkpoint that a run starts from.
The adapters are merged before the encoder is saved, so that its folder is a plain model.

Whoever loads that folder without this project must switch the layers' causal flag off as ``load_backbone``
does, or pad: transformers' SDPA reads a batch without padding causally whatever the configuration says.

Expected: LLaMA-2-7B 76.15 over seven STS tasks, 77.53 with 3R (as 3R reproduces it).
"""

from typing import Any, Literal

from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.lora import LoraLayer
from pydantic import Field
from torch import nn
from transformers import PreTrainedModel

from workflow_scripts.errors import ConfigError
from workflow_scripts.methods import simcse
from workflow_scripts.models.encoder import SentenceEncoder, attend_both_ways

__all__ = ["Config", "Objective", "build", "finish", "overrides"]

Objective = simcse.Objective


class Config(simcse.Config):
    """Settings of LLM2Vec."""

    module: Literal["llm2vec"]  # type: ignore[assignment]
    bidirectional: bool = Field(description="Whether tokens attend to those after them.")
    lora_rank: int = Field(gt=0, description="Rank r of the adapters.")
    lora_alpha: int = Field(gt=0, description="Their scale is alpha / r.")
    lora_dropout: float = Field(ge=0, lt=1, description="Of the adapters' inputs.")


def overrides(config: Config) -> dict[str, float | None]:
    """What this method asks of ``load_backbone``."""
    return simcse.overrides(config)


def build(config: Config, backbone: PreTrainedModel) -> SentenceEncoder:
    """The decoder as an encoder, its adapters alone to be trained.

    Raises:
        ConfigError: if it has no projections to adapt.
    """
    if config.bidirectional:
        backbone.config.is_causal = False
        attend_both_ways(backbone)
    adapters = LoraConfig(
        r=config.lora_rank,
        lora_alpha=config.lora_alpha,
        lora_dropout=config.lora_dropout,
        target_modules="all-linear",
    )
    try:
        inject_adapter_in_model(adapters, backbone)
    except ValueError as error:
        raise ConfigError(f"encoders: {type(backbone).__name__} has nothing to adapt: {error}") from error
    return simcse.build(config, backbone)


def finish(_config: Config, encoder: SentenceEncoder) -> None:
    """Merge the adapters into the weights and take them out."""
    adapted = [(name, m) for name, m in encoder.backbone.named_modules() if isinstance(m, LoraLayer)]
    for name, module in adapted:
        layer: Any = module
        layer.merge()
        parent, _, child = name.rpartition(".")
        base: nn.Module = layer.get_base_layer()
        setattr(encoder.backbone.get_submodule(parent), child, base)
    encoder.backbone.requires_grad_(True)
