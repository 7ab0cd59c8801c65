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
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedModel

from workflow_scripts.models.encoder import SentenceEncoder, TextEncoder, position_offset
from workflow_scripts.models.templates import pieces
from workflow_scripts.models.tokens import Packing, TokenBatch, TokenisedText, onto
from workflow_scripts.settings.methods import PromptBERT as Config
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
        self._fewest = data.shapes.width
        self.reads_once = not config.denoise
        self.passes = 3 if config.denoise else 1

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

    def inputs(self, step: int) -> Any:
        """The step's sentences in chunks, and the bare templates of each view, if their biases are subtracted."""
        batch = self.batch(step)
        if not self._config.denoise:
            return self.ready(batch)
        halves = zip(self._biases, batch.mask_BT.chunk(2), strict=True)
        return self.ready(batch), tuple(bias.of(mask_BT.sum(dim=1), self._fewest) for bias, mask_BT in halves)

    def views(self, inputs: Any) -> Tensor:
        """Both views before the head, without their templates' biases, of all processes, shape (2, B, R)."""
        if not self._config.denoise:
            return super().views(inputs)
        chunks, bare = inputs
        vectors_BR = self.read(chunks)
        biases = [bias(one) for bias, one in zip(self._biases, bare, strict=True)]
        return self.of_all_processes(vectors_BR - torch.cat(biases))


class Bare(NamedTuple):
    """A template alone, its words where they stand around sentences of several lengths."""

    batch: TokenBatch
    positions_LW: Tensor
    which_B: Tensor
    """The length of each sentence, as a row of the batch."""


class Bias:
    """The vector of a template alone, its words where they stand around a sentence of some length."""

    def __init__(
        self, encoder: SentenceEncoder, sides: tuple[Sequence[int], Sequence[int]], config: Config
    ) -> None:
        self._encoder = encoder
        self._before, self._after = sides
        self.fewest = len(self._before) + len(self._after)
        self._first = -position_offset(encoder.backbone) if config.bias_positions == "zero" else 0

    def of(self, tokens_B: Tensor, multiple: int = 1) -> Bare:
        """The template alone, for the numbers of tokens of filled templates, on the host.

        The number of lengths is rounded up to a ``multiple``, by repeating the longest.
        """
        lengths_L, which_B = torch.unique(tokens_B - self.fewest, return_inverse=True)
        lengths_L = torch.cat([lengths_L, lengths_L[-1:].expand(-len(lengths_L) % multiple)])
        words = torch.tensor([*self._before, *self._after])
        ids_LW = words.repeat(len(lengths_L), 1)
        positions_LW = torch.arange(len(words)).repeat(len(lengths_L), 1) + self._first
        positions_LW[:, len(self._before) :] += lengths_L.unsqueeze(1)
        return Bare(TokenBatch(ids_LW, torch.ones_like(ids_LW)).ready(), positions_LW, which_B)

    def of_all(self, longest: int) -> Bare:
        """The template alone, for every number of tokens up to the longest filled template's."""
        return self.of(torch.arange(self.fewest, longest + 1))

    def __call__(self, bare: Bare) -> Tensor:
        """For each sentence, shape (B, R)."""
        return self._encoder.read(bare.batch, bare.positions_LW)[bare.which_B]


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
        if self._bias is not None:
            # Of all lengths: to look for those in the batch would be to wait for the device.
            bare = onto(self._bias.of_all(mask_BT.shape[1]), mask_BT.device)
            vectors_BR = vectors_BR - self._bias(
                bare._replace(which_B=mask_BT.sum(dim=1) - self._bias.fewest)
            )
        return self.encoder.project(vectors_BR)
