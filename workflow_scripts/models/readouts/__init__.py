"""Readouts, which map an encoder's hidden states to one sentence vector; any method can use any readout.

A file of this folder has a class ``Readout``, a subclass of ``readouts.base.ReadoutModule``. Its settings are the class
of its kind in ``settings.readouts``. A readout is imported by its name in the configuration, like a method: a registry
that imports all readouts would make each of them part of every job's code.
"""

import importlib

import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedTokenizerBase

from workflow_scripts.errors import ConfigError
from workflow_scripts.models.readouts.base import ReadoutModule
from workflow_scripts.settings.names import Template
from workflow_scripts.settings.readouts import ReadoutConfig


def build_readout(config: ReadoutConfig, backbone_config: PretrainedConfig) -> ReadoutModule:
    """Return a readout with newly drawn parameters."""
    kind: type[ReadoutModule] = importlib.import_module(f"{__name__}.{config.kind}").Readout
    readout = kind(backbone_config.hidden_size, **config.model_dump(exclude={"kind"}))
    draw_linear_layers(readout)
    return readout


def draw_linear_layers(module: nn.Module) -> None:
    """Draw the weights of all linear layers in a module from N(0, 0.02), and set their biases to 0.

    This is ``init_weights`` of BERT and RoBERTa. The codes of SimCSE, S2Sent and LayerAttPooler call it for their own
    modules. PyTorch's default, U(-a, a) with a = 1 / sqrt(inputs), has about the same standard deviation for 768
    inputs, but a larger one for narrow layers.
    """
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=0.02)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def set_mask_token(module: nn.Module, tokenizer: PreTrainedTokenizerBase, template: Template | None) -> None:
    """Set the buffers ``mask_id`` and ``mask_counts`` of all readouts in ``module``, which model folders save.

    Args:
        module: The encoder.
        tokenizer: Its tokeniser, for the id of the mask.
        template: Its prompt, for the numbers of masks before and after the sentence.

    Raises:
        ConfigError: if the tokeniser has no mask.
    """
    for name, buffer in module.named_buffers():
        kind = name.rsplit(".", 1)[-1]
        if kind == "mask_id":
            if tokenizer.mask_token_id is None:
                raise ConfigError(
                    "readout: it reads [MASK], and the tokeniser has no mask. Choose another readout."
                )
            buffer.fill_(int(tokenizer.mask_token_id))
        elif kind == "mask_counts" and template is not None:
            buffer.copy_(torch.tensor(template.mask_counts))
