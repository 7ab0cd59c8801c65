"""PromptBERT: two templates make the two views of a sentence, and [MASK] reads its vector.

Jiang et al. 2022, https://arxiv.org/abs/2201.04337; settings of the official code. Each view loses the bias of
its template: what the template alone, without the sentence but with its words where they stood, puts into the
vector. At test one template is used, without head and without that subtraction.

S2Sent calls this PromptCSE and averages all tokens where PromptBERT reads [MASK] (its section 4.1); with the
readout ``s2sent``, ``pooling: avg`` or ``mask`` select either. The bias is then what the selector reads of the
template alone.

Expected: BERT-base on a million Wikipedia sentences, batches of 256, learning rate 1e-5, seven STS tasks: 78.54
over ten seeds.

Shape suffixes: B sentences, T tokens, L distinct lengths, W tokens of a template, R width of the readout.
"""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor
from transformers import PreTrainedModel

from workflow_scripts.losses.infonce import infonce
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.templates import Template, pieces
from workflow_scripts.models.tokens import TokenBatch, TokenisedText
from workflow_scripts.training import contrastive
from workflow_scripts.training.contrastive import Contrastive, overrides, rows_of_all
from workflow_scripts.training.material import Material
from workflow_scripts.training.ranks import gathered

__all__ = ["Config", "Objective", "build", "overrides"]


class Config(Contrastive):
    """Settings of PromptBERT."""

    module: Literal["promptbert"]
    templates: tuple[Template, Template] = Field(description="One for each view while training.")
    test_template: Template = Field(
        description="At test; the code ends sentences in a full stop there alone."
    )
    denoise: bool = Field(description="Whether the templates' own vectors are subtracted while training.")


def build(config: Config, backbone: PreTrainedModel) -> SentenceEncoder:
    """The encoder that is trained, evaluated and saved; it carries the template of the test.

    Raises:
        ConfigError: as ``contrastive.build``.
    """
    return contrastive.build(config, backbone, config.test_template)


class Objective:
    """Loss of one step on a corpus of sentences; ``read`` and ``compare`` are its halves."""

    def __init__(self, config: Config, encoder: SentenceEncoder, material: Material) -> None:
        self.module = encoder
        self.encoder = encoder
        self._text = TokenisedText.joined([material.tokenised("anchor", one) for one in config.templates])
        self._pieces = [pieces(template, material.tokenizer) for template in config.templates]
        self._sampler = material.sampler
        self._config = config

    def loss(self, step: int) -> Tensor:
        """Contrast the two templated views of the step's sentences."""
        return self.compare(self.encoder.project(self.read(step)))

    def read(self, step: int) -> Tensor:
        """Both views before the head, without their templates' biases, of all processes, shape (2, B, R)."""
        rows = rows_of_all(self._sampler.rows_of(step), 2, len(self._text))
        batch = self._text.batch(rows).to(self.encoder.device)
        vectors_BR = self.encoder.read(batch.ids_BT, batch.mask_BT)
        if self._config.denoise:
            halves = zip(self._pieces, batch.mask_BT.chunk(2), strict=True)
            vectors_BR = vectors_BR - torch.cat([self._bias(*half) for half in halves])
        return torch.stack([gathered(view_BR) for view_BR in vectors_BR.chunk(2)])

    def compare(self, views_2BD: Tensor) -> Tensor:
        """Contrast the two views, a scalar."""
        first_BD, second_BD = views_2BD
        return infonce(first_BD, second_BD, self._config.temperature)

    def _bias(self, sides: tuple[list[int], list[int]], mask_BT: Tensor) -> Tensor:
        """The vector of the template alone for each sentence's length, shape (B, R)."""
        before, after = sides
        lengths_B = mask_BT.sum(dim=1) - len(before) - len(after)
        lengths_L, which_B = torch.unique(lengths_B, return_inverse=True)
        ids_LW = torch.tensor(before + after, device=mask_BT.device).expand(len(lengths_L), -1)
        places_LW = torch.arange(ids_LW.shape[1], device=mask_BT.device).expand_as(ids_LW).clone()
        places_LW[:, len(before) :] += lengths_L.unsqueeze(1)
        alone = TokenBatch(ids_LW, torch.ones_like(ids_LW))
        bias_LR = self.encoder.read(alone.ids_BT, alone.mask_BT, places_LW)
        return bias_LR[which_B]
