"""DiffCSE: SimCSE, and a discriminator that finds replaced tokens with the help of the sentence's vector.

    L = L_SimCSE + lambda L_RTD                                       (Chuang et al. 2022, section 3)

https://arxiv.org/abs/2204.10298; settings of the official code. A fixed generator fills masked tokens of each
view; the discriminator, a second copy of the encoder, reads the result with the sentence's vector in place of
[CLS]'s embedding and predicts which tokens were replaced. Padding counts as not replaced, as in the code.
ASSUME: every token but [CLS] becomes the generator's likeliest at its position (``filled: all``), as in the code, which
restores only [CLS]. A word that was not chosen nearly always stays the same; [SEP], which no generator was trained to
predict, seldom does and then counts as replaced. In the text only the chosen tokens are filled (``chosen``), which
saves the scores over the vocabulary for all others.
By default the generator reads inputs as in BERT's training, with its dropout on, as in the code, which never puts it
into evaluation mode: of the chosen tokens 80% are [MASK], 10% random and 10% unchanged (``masking: bert``). The text
mentions only masks (``mask``).
The discriminator is discarded after training. With the readout ``layer_attention`` this is LayerAttPooler's
appendix B.

The generator is the base encoder with its own masked-language-model head, since a run starts from one encoder;
DiffCSE's is DistilBERT, so runs have a label.

Expected: BERT-base on a million Wikipedia sentences, seven STS tasks, 78.49 (other reports, among them its author's on
another machine, are at most 77; DiffCSE issue 8).

Shape suffixes: B sentences of both views, T tokens, D width, M masked tokens.
"""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from workflow_scripts.losses.infonce import infonce
from workflow_scripts.methods import contrastive
from workflow_scripts.models.backbone import hidden_states, pooler_of
from workflow_scripts.models.dropout import DropoutMasks
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.packed import packed, packs
from workflow_scripts.models.tokens import TokenBatch
from workflow_scripts.settings.methods import DiffCSE as Config
from workflow_scripts.training import objective
from workflow_scripts.training.data import TrainingData
from workflow_scripts.training.mlm import REPEATED, Masking, load_masked_language_model, places_of
from workflow_scripts.training.ranks import gathered


def projector(read_width: int, width: int) -> nn.Module:
    """Return Linear, BatchNorm, ReLU, Linear, BatchNorm without scale, (B, R) to (B, D), inside 2 D wide."""
    return nn.Sequential(
        nn.Linear(read_width, 2 * width, bias=False),
        nn.BatchNorm1d(2 * width),
        nn.ReLU(),
        nn.Linear(2 * width, width, bias=False),
        nn.BatchNorm1d(width, affine=False),
    )


class Discriminator(nn.Module):
    """Copy of the encoder that reads a sentence vector in place of [CLS], with a classifier of its tokens."""

    def __init__(self, backbone: PreTrainedModel) -> None:
        super().__init__()
        self.backbone = copy.deepcopy(backbone)
        if (pooler := pooler_of(self.backbone)) is not None:
            pooler.requires_grad_(False)  # not part of this loss
        self.classifier = nn.Linear(backbone.config.hidden_size, 2)
        nn.init.normal_(self.classifier.weight, std=0.02)
        nn.init.zeros_(self.classifier.bias)
        words = self.backbone.get_input_embeddings()
        embeddings = dict(self.backbone.named_children()).get("embeddings", words)
        embeddings.register_forward_hook(self._put_in)
        self._vectors_BD: Tensor | None = None

    def _put_in(self, _module: nn.Module, _inputs: object, embedded_BTD: Tensor) -> Tensor:
        assert self._vectors_BD is not None
        return torch.cat([self._vectors_BD.unsqueeze(1), embedded_BTD[:, 1:]], dim=1)

    def forward(self, batch: TokenBatch, vectors_BD: Tensor) -> Tensor:
        """Return scores of "original" and "replaced" for each position, including padding, (B, T, 2)."""
        if packs(self.backbone):
            packing = batch.packed().with_padding()
            masks = DropoutMasks(packing) if self.backbone.training else None
            encoder = packed(self.backbone, packing, masks)
            (states_BTD,) = encoder.states(batch.ids_BT, None, "last", vectors_BD)
        else:
            self._vectors_BD = vectors_BD
            states_BTD = hidden_states(self.backbone, batch, "padded")[-1]
            self._vectors_BD = None
        scores: Tensor = self.classifier(states_BTD)
        return scores


def build(config: Config, tokenizer: PreTrainedTokenizerBase, backbone: PreTrainedModel) -> SentenceEncoder:
    """Return the encoder to train, evaluate and save.

    Raises:
        ConfigError: as ``contrastive.build``.
    """
    return contrastive.build(config, tokenizer, backbone, head=config.projector == "head")


class DiffCSEInputs(NamedTuple):
    """Inputs of a step: both views of its sentences, with and without masks."""

    batch: TokenBatch
    masked_BT: Tensor
    places_M: Tensor
    """Positions, among all B * T, that the generator fills."""
    counted_BT: Tensor
    """Whether a position counts in the discriminator's loss: up to the longest sentence, padding included."""


class Objective(objective.Objective):
    """SimCSE's loss and the discriminator's, on a corpus of sentences."""

    passes = 3  # encoder, generator and discriminator

    def __init__(self, config: Config, encoder: SentenceEncoder, data: TrainingData) -> None:
        self.encoder = encoder
        self.project: Callable[[Tensor], Tensor] = encoder.project
        discarded = nn.ModuleDict()
        if config.projector == "batch_norm":
            width = encoder.backbone.config.hidden_size
            self.project = discarded["projector"] = projector(encoder.readout.width, width)
        self.discriminator = Discriminator(encoder.backbone)
        parts = {"encoder": encoder, "discriminator": self.discriminator, **discarded}
        self.module = nn.ModuleDict(parts).to(encoder.device)
        self.generator = load_masked_language_model(Path(str(encoder.backbone.name_or_path)))
        self.generator.to(encoder.device).requires_grad_(False).train(config.generator_dropout)
        self._text = data.tokenised("anchor")
        self._sampler = data.sampler
        self._masking = Masking(data.tokenizer, config.mlm_probability, data.sampler.seed)
        self._config = config
        self._shapes = data.shapes

    def inputs(self, step: int) -> DiffCSEInputs:
        """Return both views of the step's sentences, with tokens masked for the generator."""
        whole = self._text.batch(self._sampler.rows_of(step)).repeated()
        masked_BT, chosen_BT = self.mask(whole.ids_BT, step)
        if self._config.filled == "all":
            chosen_BT = whole.mask_BT.bool()
            chosen_BT[:, 0] = False
        batch = whole.ready(self._shapes)
        behind = (0, batch.ids_BT.shape[1] - masked_BT.shape[1])
        places_M = places_of(F.pad(chosen_BT, behind), self._shapes.tokens)
        counted_BT = F.pad(torch.ones_like(chosen_BT), behind)
        return DiffCSEInputs(batch, F.pad(masked_BT, behind), places_M, counted_BT)

    def loss(self, inputs: DiffCSEInputs) -> objective.LossOutput:
        """Return the sum of the contrastive loss of two dropout views and the discriminator's loss."""
        batch = inputs.batch
        vectors_BD = self.project(self.encoder.read(batch))
        first_BD, second_BD = vectors_BD.chunk(2)
        contrast = infonce(gathered(first_BD), gathered(second_BD), self._config.temperature)
        filled_BT = self.fill(inputs)
        scores_BT2 = self.discriminator(batch._replace(ids_BT=filled_BT), vectors_BD)
        replaced_BT = ((filled_BT != batch.ids_BT) * batch.mask_BT).long()
        target_BT = torch.where(inputs.counted_BT, replaced_BT, REPEATED)
        detection = F.cross_entropy(scores_BT2.flatten(0, 1), target_BT.flatten(), ignore_index=REPEATED)
        return objective.LossOutput(contrast + self._config.weight * detection)

    def mask(self, ids_BT: Tensor, step: int) -> tuple[Tensor, Tensor]:
        """Return the generator's input ids, a function of seed and step, and whether each was chosen; both (B, T).

        Special tokens are never chosen.
        """
        chosen_BT, _, draw = self._masking.chosen(ids_BT, step)
        if self._config.masking == "mask":
            return torch.where(chosen_BT, self._masking.mask_id, ids_BT), chosen_BT
        return self._masking.corrupted(ids_BT, chosen_BT, draw), chosen_BT

    @torch.no_grad()
    def fill(self, inputs: DiffCSEInputs) -> Tensor:
        """Return ids with the generator's likeliest token at each filled position, (B, T); [CLS] and padding stay."""
        ids_BT = inputs.batch.ids_BT
        scores_MV = self.generator(inputs.batch._replace(ids_BT=inputs.masked_BT), inputs.places_M)
        return ids_BT.flatten().scatter(0, inputs.places_M, scores_MV.argmax(dim=-1)).view_as(ids_BT)
