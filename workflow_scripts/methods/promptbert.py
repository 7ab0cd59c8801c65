"""PromptBERT: two templates make the two views of a sentence, and [MASK] reads its vector.

Jiang et al. 2022, https://arxiv.org/abs/2201.04337; settings of the official code. The bias of its template is
subtracted from each view: the vector of the template without the sentence, with its words at the same positions. At
test one template is used, without head and without subtraction.

S2Sent calls this PromptCSE and averages all tokens where PromptBERT reads [MASK] (its section 4.1); with the readout
``s2sent``, ``pooling: avg`` or ``mask`` select either. The bias is then the selector's vector of the template without a
sentence.

Where the text is ambiguous, the default follows the code, with one exception:

* ``truncate``: the code cuts a training sentence to 32 tokens without special tokens (``sentence``); ``with_specials``
  counts [CLS] and [SEP] among them, as all other methods here do.
* ``select_checkpoint_with``: the code scores checkpoints with its first training template minus its bias, without
  adding a full stop (``denoised``); ``test`` scores the encoder that is evaluated and saved.
* ``bias_positions``: the code numbers the words of the bare template from 0 (``zero``). For BERT this is the same as
  the encoder's ``own`` numbering; RoBERTa's begins at 2, and it was never trained with words at 0 and 1. The default is
  ``own``, since the text asks for the same positions as with the sentence (section 3.3).

The templates of run.sh for RoBERTa have no blank before the sentence in training, where sentence and template are
tokenised separately, and a blank at test, where the evaluation fills in text.

Expected: BERT-base on a million Wikipedia sentences, batches of 256, learning rate 1e-5, seven STS tasks: 78.54
over ten seeds.

Shape suffixes: B sentences, T tokens, L distinct lengths, W tokens of a template, R width of the readout.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from workflow_scripts.methods import contrastive
from workflow_scripts.models.backbone import position_offset
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.templates import pieces
from workflow_scripts.models.text_encoder import TokenEncoder
from workflow_scripts.models.tokens import Packing, TokenBatch, TokenisedText, onto
from workflow_scripts.settings.methods import PromptBERT as Config
from workflow_scripts.settings.names import Template
from workflow_scripts.training.data import TrainingData


def build(config: Config, tokenizer: PreTrainedTokenizerBase, backbone: PreTrainedModel) -> SentenceEncoder:
    """Return the encoder to train, evaluate and save, with the template for the test.

    Raises:
        ConfigError: as ``contrastive.build``.
    """
    return contrastive.build(config, tokenizer, backbone, config.test_template)


class Objective(contrastive.Objective):
    """Contrast between the two templated views of a step's sentences."""

    reads_once = False
    passes = 3  # sentences, and bare templates, in one pass or two

    def __init__(self, config: Config, encoder: SentenceEncoder, data: TrainingData) -> None:
        super().__init__(config, encoder, data)
        self._biases = [Bias(encoder, pieces(side, data.tokenizer), config) for side in config.templates]
        self._config = config
        self._fewest = data.shapes.width

    def texts(self, config: Config, data: TrainingData) -> Sequence[TokenisedText]:
        """Return the sentences in each template."""
        if config.truncate == "sentence":
            data = data._replace(max_tokens=data.max_tokens + data.tokenizer.num_special_tokens_to_add())
        return [data.tokenised("anchor", template) for template in config.templates]

    @property
    def scored(self) -> TokenEncoder | None:
        """Return the encoder with the first training template minus its bias, if this selects checkpoints."""
        if self._config.select_checkpoint_with == "test":
            return None
        return Denoised(self.encoder, self._config.templates[0], self._biases[0])

    def inputs(self, step: int) -> Any:
        """Return the step's sentences in chunks, and the bare templates of each view."""
        batch = self.batch(step)
        halves = zip(self._biases, batch.mask_BT.chunk(2), strict=True)
        rooms_VB = torch.stack([bias.room(mask_BT.sum(dim=1)) for bias, mask_BT in halves])
        lengths_L, which_VB = distinct(rooms_VB, self._fewest)
        bare = [bias.at(lengths_L, which_B) for bias, which_B in zip(self._biases, which_VB, strict=True)]
        # One pass if possible: templates are too small to keep a GPU busy.
        if self.encoder.readout_settings.is_independent:
            bare = [BareTemplates.paired(*bare)]
        return self.ready(batch), tuple(bare)

    def views(self, inputs: Any) -> Tensor:
        """Return both views before the head, minus their templates' biases, of all processes, shape (2, B, R)."""
        chunks, bare = inputs
        vectors_BR = self.read(chunks)
        biases = [bias_of(self.encoder, templates) for templates in bare]
        return self.gather_processes(vectors_BR - torch.cat(biases))


class BareTemplates(NamedTuple):
    """Templates without sentences, for several lengths of sentences, which determine the positions of their words."""

    batch: TokenBatch
    positions_LW: Tensor
    which_B: Tensor
    """The row of the batch for each sentence, by its length."""

    @classmethod
    def paired(cls, first: "BareTemplates", second: "BareTemplates") -> "BareTemplates":
        """Return the rows of two templates for the same lengths, in turn; sentences of the first come first.

        So the number of a row, by which dropout draws, does not depend on the number of lengths.
        """
        batch = TokenBatch.joined([first.batch, second.batch])
        width = batch.ids_BT.shape[1]
        positions_xW = torch.cat(
            [
                F.pad(templates.positions_LW, (0, width - templates.positions_LW.shape[1]))
                for templates in (first, second)
            ]
        )
        in_turn = torch.arange(len(positions_xW)).view(2, -1).T.flatten()
        turned = TokenBatch(batch.ids_BT[in_turn], batch.mask_BT[in_turn])
        which_B = torch.cat([2 * first.which_B, 2 * second.which_B + 1])
        return cls(turned.ready(), positions_xW[in_turn], which_B)


def distinct(rooms_x: Tensor, multiple: int) -> tuple[Tensor, Tensor]:
    """Return the distinct lengths, (L), rounded up in number by repeating the longest, and the index of each length."""
    lengths_L, which_x = torch.unique(rooms_x, return_inverse=True)
    return torch.cat([lengths_L, lengths_L[-1:].expand(-len(lengths_L) % multiple)]), which_x


class Bias:
    """Template without a sentence, with its words at the same positions as around one."""

    def __init__(
        self, encoder: SentenceEncoder, sides: tuple[Sequence[int], Sequence[int]], config: Config
    ) -> None:
        self._before, self._after = sides
        self.fewest = len(self._before) + len(self._after)
        self._first = -position_offset(encoder.backbone) if config.bias_positions == "zero" else 0

    def room(self, tokens_B: Tensor) -> Tensor:
        """Return the numbers of tokens of the sentences in some filled templates."""
        return tokens_B - self.fewest

    def at(self, lengths_L: Tensor, which_B: Tensor) -> BareTemplates:
        """Return the bare template for sentences of some lengths, on the host."""
        words = torch.tensor([*self._before, *self._after])
        ids_LW = words.repeat(len(lengths_L), 1)
        positions_LW = torch.arange(len(words)).repeat(len(lengths_L), 1) + self._first
        positions_LW[:, len(self._before) :] += lengths_L.unsqueeze(1)
        return BareTemplates(TokenBatch(ids_LW, torch.ones_like(ids_LW)).ready(), positions_LW, which_B)

    def up_to(self, longest: int) -> BareTemplates:
        """Return the bare template for every number of tokens up to ``longest``."""
        rooms_L = torch.arange(longest + 1 - self.fewest)
        return self.at(rooms_L, rooms_L)


def bias_of(encoder: SentenceEncoder, bare: BareTemplates) -> Tensor:
    """Return the bias for each sentence, shape (B, R)."""
    return encoder.read(bare.batch, bare.positions_LW)[bare.which_B]


class Denoised(TokenEncoder):
    """Encoder with a template and without the template's bias, which is scored, but never saved."""

    def __init__(self, encoder: SentenceEncoder, template: Template, bias: Bias) -> None:
        super().__init__()
        self.encoder = encoder
        self.template = template
        self.tokenizer = encoder.tokenizer
        self.width = encoder.width
        self._bias = bias

    def forward(self, ids_BT: Tensor, mask_BT: Tensor, packing: Packing | None = None) -> Tensor:
        """Return embeddings of the tokens of a batch, (B, D), not normalised."""
        # For all lengths: to find those of the batch, the host would wait for the device.
        bare = onto(self._bias.up_to(mask_BT.shape[1]), mask_BT.device)
        bare = bare._replace(which_B=self._bias.room(mask_BT.sum(dim=1)))
        vectors_BR = self.encoder.read(TokenBatch(ids_BT, mask_BT, packing))
        return self.encoder.project(vectors_BR - bias_of(self.encoder, bare))
