"""PromptBERT: two templates make the two views of a sentence, and [MASK] reads its vector.

Jiang et al. 2022, https://arxiv.org/abs/2201.04337; settings of the official code. Each view loses the bias of
its template: what the template alone, without the sentence but with its words where they stood, puts into the
vector. At test one template is used, without head and without that subtraction.

S2Sent calls this PromptCSE and averages all tokens where PromptBERT reads [MASK] (its section 4.1); with the
readout ``s2sent``, ``pooling: avg`` or ``mask`` select either. The bias is then what the selector reads of the
template alone.

Where the text leaves things open, the code's way is the default but for one:

* ``cut``: the code cuts a training sentence to 32 tokens of its own (``sentence``); ``with_specials`` counts [CLS] and
  [SEP] among them, as every other method here does.
* ``chosen_by``: the code scores checkpoints by its first training template without its bias, and adds no full stop
  (``denoised``); ``test`` scores what is evaluated and saved.
* ``bias_positions``: the code numbers the words of the bare template from 0. That is the encoder's ``own`` way for
  BERT; RoBERTa begins at 2, and 0 and 1 are positions that it has never seen a word at (``zero``). The default is its
  own, since the text asks for the same positions as with the sentence (section 3.3).

The templates of run.sh for RoBERTa have no blank before the sentence while training, where sentence and template are
tokenised apart, and one at test, where its evaluation fills in the text.

Expected: BERT-base on a million Wikipedia sentences, batches of 256, learning rate 1e-5, seven STS tasks: 78.54
over ten seeds.

Shape suffixes: B sentences, T tokens, L distinct lengths, W tokens of a template, R width of the readout.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel

from workflow_scripts.models.encoder import SentenceEncoder, TextEncoder, position_offset
from workflow_scripts.models.templates import pieces
from workflow_scripts.models.tokens import Packing, TokenBatch, TokenisedText, onto
from workflow_scripts.settings.methods.promptbert import Config
from workflow_scripts.settings.templates import Template
from workflow_scripts.training import contrastive
from workflow_scripts.training.data import TrainingData


def build(config: Config, backbone: PreTrainedModel) -> SentenceEncoder:
    """The encoder that is trained, evaluated and saved; it carries the template of the test.

    Raises:
        ConfigError: as ``contrastive.build``.
    """
    return contrastive.build(config, backbone, config.test_template)


class Objective(contrastive.Objective):
    """Contrasts the two templated views of a step's sentences."""

    def __init__(self, config: Config, encoder: SentenceEncoder, data: TrainingData) -> None:
        super().__init__(config, encoder, data)
        self._biases = [Bias(encoder, pieces(one, data.tokenizer), config) for one in config.templates]
        self._config = config

    def texts(self, config: Config, data: TrainingData) -> Sequence[TokenisedText]:
        """The sentences in each template."""
        if config.cut == "sentence":
            data = data._replace(max_tokens=data.max_tokens + data.tokenizer.num_special_tokens_to_add())
        return [data.tokenised("anchor", one) for one in config.templates]

    @property
    def scored(self) -> TextEncoder | None:
        """The first template without its bias, if checkpoints are chosen by it."""
        if self._config.chosen_by == "test":
            return None
        return Denoised(
            self.encoder, self._config.templates[0], self._biases[0] if self._config.denoise else None
        )

    def views(self, step: int) -> Tensor:
        """Both views before the head, without their templates' biases, of all processes, shape (2, B, R)."""
        batch = self.batch(step)
        vectors_BR = self.read(batch)
        if self._config.denoise:
            halves = zip(self._biases, onto(batch.mask_BT, self.encoder.device).chunk(2), strict=True)
            vectors_BR = vectors_BR - torch.cat([bias(mask_BT) for bias, mask_BT in halves])
        return self.of_all_processes(vectors_BR)


class Bias:
    """The vector of a template alone, its words where they stand around a sentence of some length."""

    def __init__(
        self, encoder: SentenceEncoder, sides: tuple[Sequence[int], Sequence[int]], config: Config
    ) -> None:
        self._encoder = encoder
        self._before, self._after = sides
        self._first = -position_offset(encoder.backbone) if config.bias_positions == "zero" else 0

    def __call__(self, mask_BT: Tensor) -> Tensor:
        """For the length of each filled template, shape (B, R)."""
        lengths_B = mask_BT.sum(dim=1) - len(self._before) - len(self._after)
        lengths_L, which_B = torch.unique(lengths_B, return_inverse=True)
        words = torch.tensor([*self._before, *self._after], device=mask_BT.device)
        ids_LW = words.expand(len(lengths_L), -1)
        positions_LW = torch.arange(len(words), device=mask_BT.device).expand_as(ids_LW) + self._first
        positions_LW[:, len(self._before) :] += lengths_L.unsqueeze(1)
        bias_LR = self._encoder.read(TokenBatch(ids_LW, torch.ones_like(ids_LW)), positions_LW)
        return bias_LR[which_B]


class Denoised(TextEncoder):
    """An encoder that puts sentences into a template and subtracts the template's bias; it is scored, never saved."""

    def __init__(self, encoder: SentenceEncoder, template: Template, bias: Bias | None) -> None:
        super().__init__()
        self.encoder = encoder
        self.template = template
        self.width = encoder.width
        self._bias = bias

    def forward(self, ids_BT: Tensor, mask_BT: Tensor, packing: Packing | None = None) -> Tensor:
        """Embed the tokens of a batch; returns (B, D), not normalised."""
        vectors_BR = self.encoder.read(TokenBatch(ids_BT, mask_BT, packing))
        return self.encoder.project(vectors_BR if self._bias is None else vectors_BR - self._bias(mask_BT))
