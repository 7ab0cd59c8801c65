"""LLM2Vec's contrastive stage: SimCSE on a decoder with bidirectional attention, through low-rank adapters.

BehnamGhader et al. 2024, https://arxiv.org/abs/2404.05961: bidirectional attention, mean pooling, LoRA on every
projection, dropout 0.3 of the attention weights for the two views, 1,000 steps of 128 sentences at 3e-5. The paper's
first stage, adaptation by masked next-token prediction, is the checkpoint that a run starts from. The adapters are
merged before the encoder is saved, so its folder is a plain model.

Weights of seven billion parameters are 27 GB in float32. They are frozen, so ``weights`` may hold them in bfloat16, as
in the official code; the adapters, which are trained, are in float32. Merging rounds to the weights' precision, in
which the model is saved. The official code keeps the adapters separate, and adds them in every pass. All loaders
compute with the saved model in float32.

To load the folder without this project, switch the layers' causal flag off as ``load_backbone`` does, or pad:
transformers' SDPA attends causally in a batch without padding, whatever the configuration says.

Expected: LLaMA-2-7B 76.15 over seven STS tasks, 77.53 with 3R (as 3R reproduces it).
"""

from typing import Any

from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.lora import LoraLayer
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from workflow_scripts.methods import contrastive
from workflow_scripts.models.backbone import attend_both_ways
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.settings.methods import LLM2Vec as Config


def build(config: Config, tokenizer: PreTrainedTokenizerBase, backbone: PreTrainedModel) -> SentenceEncoder:
    """Return the decoder as an encoder; only its adapters are trained.

    Raises:
        ConfigError: as ``contrastive.build``.
    """
    backbone.config.is_causal = False
    attend_both_ways(backbone)
    adapters = LoraConfig(
        r=config.lora_rank,
        lora_alpha=config.lora_alpha,
        lora_dropout=config.lora_dropout,
        target_modules="all-linear",
    )
    inject_adapter_in_model(adapters, backbone)
    for parameter in backbone.parameters():
        if parameter.requires_grad:  # bfloat16's eight bits would lose steps of 3e-5
            parameter.data = parameter.data.float()
    return contrastive.build(config, tokenizer, backbone)


class Objective(contrastive.Objective):
    """SimCSE's loss on the adapted decoder."""

    def finish(self) -> None:
        """Merge the adapters into the weights and remove them."""
        backbone = self.encoder.backbone
        adapted = [(name, m) for name, m in backbone.named_modules() if isinstance(m, LoraLayer)]
        for name, module in adapted:
            layer: Any = module
            layer.merge()
            parent, _, child = name.rpartition(".")
            base: nn.Module = layer.get_base_layer()
            setattr(backbone.get_submodule(parent), child, base)
        backbone.requires_grad_(True)
