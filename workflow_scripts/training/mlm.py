"""Continued masked-language-model training of an encoder on a corpus.

Devlin et al. 2019, https://arxiv.org/abs/1810.04805: 15% of the tokens are chosen; of these 80% become
[MASK], 10% a random token, 10% stay. The head is fresh (dense, GELU, LayerNorm, decoder tied to the
word embeddings) and ends in a file of its own beside the encoder. It sees the chosen positions alone: with a
vocabulary of 30,522 its output layer would else cost more than the encoder.

Shape suffixes: B sentences, T tokens, M chosen positions, D width, V vocabulary.
"""

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from pydantic import Field, model_validator
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from workflow_scripts.config import Slice
from workflow_scripts.errors import DataError, TrainingError
from workflow_scripts.models.encoder import check_length
from workflow_scripts.models.tokens import TokenisedText
from workflow_scripts.training.sampler import Sampler
from workflow_scripts.training.settings import Training


class ContinueMlm(Slice):
    """Settings of ``continue_mlm``."""

    mask_share: float = Field(gt=0, lt=1, description="Share of tokens to predict; 0.15 in BERT.")
    seed: int = Field(ge=0, description="Order of sentences, masks and the fresh head.")
    training: Training

    @model_validator(mode="after")
    def _one_process(self) -> "ContinueMlm":
        if self.training.gpus > 1:
            raise ValueError("training.gpus must be 1: processes choose different numbers of tokens")
        return self


class MaskedLanguageModel(nn.Module):
    """An encoder with a fresh prediction head."""

    def __init__(self, backbone: PreTrainedModel) -> None:
        super().__init__()
        width, vocabulary = backbone.config.hidden_size, backbone.config.vocab_size
        self.backbone = backbone
        self.dense = nn.Linear(width, width)
        nn.init.normal_(self.dense.weight, std=0.02)
        nn.init.zeros_(self.dense.bias)
        self.norm = nn.LayerNorm(width)
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        if getattr(backbone, "pooler", None) is not None:
            backbone.pooler.requires_grad_(False)  # no part of this loss; saved as it was

    def forward(self, ids_BT: Tensor, mask_BT: Tensor, chosen_BT: Tensor) -> Tensor:
        """Scores of the vocabulary at the chosen positions, shape (M, V)."""
        check_length(self.backbone, ids_BT)
        states_BTD = self.backbone(input_ids=ids_BT, attention_mask=mask_BT).last_hidden_state
        hidden_MD = self.norm(F.gelu(self.dense(states_BTD[chosen_BT])))
        words_VD = self.backbone.get_input_embeddings().weight
        assert isinstance(words_VD, Tensor)
        return F.linear(hidden_MD, words_VD, self.bias)


class Objective:
    """Loss of one step: cross-entropy of the true tokens at the chosen positions."""

    def __init__(
        self,
        module: MaskedLanguageModel,
        text: TokenisedText,
        sampler: Sampler,
        tokenizer: PreTrainedTokenizerBase,
        settings: ContinueMlm,
    ) -> None:
        self.module: nn.Module = module
        self._text = text
        self._sampler = sampler
        if tokenizer.mask_token_id is None:
            raise DataError("continue_mlm: the encoder's tokeniser has no mask token. Adapt another encoder.")
        self._mask_id = int(tokenizer.mask_token_id)
        self._special = torch.tensor(sorted(tokenizer.all_special_ids))
        self._vocabulary = module.backbone.config.vocab_size
        self._settings = settings

    def loss(self, step: int) -> Tensor:
        """Mask the step's sentences and predict what was masked."""
        ids_BT, mask_BT = self._text.batch(self._sampler.rows_of(step))
        chosen_BT, masked_BT = self.mask(ids_BT, step)
        device = next(self.module.parameters()).device
        scores_MV = self.module(masked_BT.to(device), mask_BT.to(device), chosen_BT.to(device))
        return F.cross_entropy(scores_MV, ids_BT[chosen_BT].to(device))

    def mask(self, ids_BT: Tensor, step: int) -> tuple[Tensor, Tensor]:
        """Choose positions, a function of seed and step; at least one, and never a special token.

        Returns:
            Which positions are chosen (bool), and the ids with those replaced, both (B, T).

        Raises:
            TrainingError: if the sentences hold special tokens alone.
        """
        draw = np.random.default_rng([self._settings.seed, step, 1])
        chance_BT = torch.from_numpy(draw.random(tuple(ids_BT.shape)))
        chance_BT[torch.isin(ids_BT, self._special)] = 2.0  # never chosen
        if bool((chance_BT > 1).all()):
            raise TrainingError(f"continue_mlm: no token to predict at step {step}. Check the corpus.")
        chosen_BT = chance_BT < self._settings.mask_share
        chosen_BT.view(-1)[chance_BT.argmin()] = True
        kind_BT = torch.from_numpy(draw.random(tuple(ids_BT.shape)))
        random_BT = torch.from_numpy(draw.integers(self._vocabulary, size=tuple(ids_BT.shape)))
        masked_BT = ids_BT.clone()
        masked_BT[chosen_BT & (kind_BT < 0.8)] = self._mask_id
        swapped_BT = chosen_BT & (kind_BT >= 0.8) & (kind_BT < 0.9)
        masked_BT[swapped_BT] = random_BT[swapped_BT]
        return chosen_BT, masked_BT
