"""Masked-language-model training of an encoder on a corpus: of one that exists, or of one afresh.

Devlin et al. 2019, https://arxiv.org/abs/1810.04805: 15% of the tokens are chosen; of these, 80% become [MASK], 10% a
random token, and 10% stay as they are. The head is newly initialised (dense, GELU, LayerNorm, decoder tied to the word
embeddings) and saved in a separate file in the encoder's folder. It is applied only at the chosen positions: with a
vocabulary of 30,522, its output layer would otherwise cost more than the encoder.

Shape suffixes: B sentences, T tokens, M chosen positions, D width, V vocabulary.
"""

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PreTrainedModel, PreTrainedTokenizerBase

from workflow_scripts.errors import ConfigError, DataError, TrainingError
from workflow_scripts.methods import base
from workflow_scripts.models.encoder import hidden_states
from workflow_scripts.models.tokens import TokenBatch, TokenisedText
from workflow_scripts.settings.mlm import ContinueMlm, Sizes
from workflow_scripts.training.sampler import Sampler


def afresh(base: Path, sizes: Sizes) -> PreTrainedModel:
    """An encoder with random weights, of the architecture and vocabulary of ``base``; without a pooler.

    The weights come from torch's generator, by the architecture's own initialisation.

    Raises:
        ConfigError: if the architecture names its sizes otherwise than BERT does.
    """
    config = AutoConfig.from_pretrained(base, local_files_only=True)
    values = {
        "num_hidden_layers": sizes.layers,
        "hidden_size": sizes.width,
        "num_attention_heads": sizes.heads,
        "intermediate_size": sizes.feed_forward,
    }
    if unknown := sorted(name for name in values if not hasattr(config, name)):
        raise ConfigError(
            f"encoders: adapt.afresh: {config.model_type} has no setting {unknown[0]}. "
            "Give a base of BERT's or RoBERTa's architecture."
        )
    config.update(values)
    model = AutoModel.from_config(config)  # type: ignore[no-untyped-call]
    model.pooler = None
    return model.eval()  # type: ignore[no-any-return]


class MaskedLanguageModel(nn.Module):
    """An encoder with a newly initialised prediction head; a published one's LayerNorm has its encoder's epsilon."""

    def __init__(self, backbone: PreTrainedModel, norm_epsilon: float = 1e-5) -> None:
        super().__init__()
        width, vocabulary = backbone.config.hidden_size, backbone.config.vocab_size
        self.backbone = backbone
        self.dense = nn.Linear(width, width)
        nn.init.normal_(self.dense.weight, std=0.02)
        nn.init.zeros_(self.dense.bias)
        self.norm = nn.LayerNorm(width, eps=norm_epsilon)
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        if getattr(backbone, "pooler", None) is not None:
            backbone.pooler.requires_grad_(False)  # not part of this loss; saved unchanged

    def forward(self, ids_BT: Tensor, mask_BT: Tensor, chosen_BT: Tensor) -> Tensor:
        """Scores over the vocabulary at the chosen positions, shape (M, V)."""
        (states_BTD,) = hidden_states(self.backbone, TokenBatch(ids_BT, mask_BT), "last")
        hidden_MD = self.norm(F.gelu(self.dense(states_BTD[chosen_BT])))
        words_VD = self.backbone.get_input_embeddings().weight
        assert isinstance(words_VD, Tensor)
        return F.linear(hidden_MD, words_VD, self.bias)


class Objective(base.Objective):
    """Loss of one step: cross-entropy of the true tokens at the chosen positions."""

    def __init__(
        self,
        module: MaskedLanguageModel,
        text: TokenisedText,
        sampler: Sampler,
        tokenizer: PreTrainedTokenizerBase,
        settings: ContinueMlm,
    ) -> None:
        self.module = module
        self._text = text
        self._sampler = sampler
        if tokenizer.mask_token_id is None:
            raise DataError("continue_mlm: the encoder's tokeniser has no mask token. Adapt another encoder.")
        self._mask_id = int(tokenizer.mask_token_id)
        self._special = torch.tensor(sorted(tokenizer.all_special_ids))
        self._vocabulary = module.backbone.config.vocab_size
        self._settings = settings

    def loss(self, step: int) -> Tensor:
        """Mask tokens in the step's sentences and predict them."""
        ids_BT, mask_BT, _ = self._text.batch(self._sampler.rows_of(step))
        chosen_BT, masked_BT = self.mask(ids_BT, step)
        device = next(self.module.parameters()).device
        scores_MV = self.module(masked_BT.to(device), mask_BT.to(device), chosen_BT.to(device))
        return F.cross_entropy(scores_MV, ids_BT[chosen_BT].to(device))

    def mask(self, ids_BT: Tensor, step: int) -> tuple[Tensor, Tensor]:
        """Choose positions as a function of seed and step: at least one, and never a special token.

        Returns:
            Which positions are chosen (bool), and the ids after replacement, both (B, T).

        Raises:
            TrainingError: if the sentences consist of special tokens only.
        """
        draw = np.random.default_rng([self._settings.seed, step, 1])
        chance_BT = torch.from_numpy(draw.random(tuple(ids_BT.shape)))
        chance_BT[torch.isin(ids_BT, self._special)] = 2.0  # never chosen
        if bool((chance_BT > 1).all()):
            raise TrainingError(f"continue_mlm: no token to predict at step {step}. Check the corpus.")
        chosen_BT = chance_BT < self._settings.mlm_probability
        chosen_BT.view(-1)[chance_BT.argmin()] = True
        return chosen_BT, corrupted(ids_BT, chosen_BT, draw, self._mask_id, self._vocabulary)


def corrupted(
    ids_BT: Tensor, chosen_BT: Tensor, draw: np.random.Generator, mask_id: int, vocabulary: int
) -> Tensor:
    """Ids after 80% of the chosen ones became [MASK] and 10% a random one of the vocabulary, (B, T)."""
    kind_BT = torch.from_numpy(draw.random(tuple(ids_BT.shape)))
    random_BT = torch.from_numpy(draw.integers(vocabulary, size=tuple(ids_BT.shape)))
    corrupted_BT = ids_BT.clone()
    corrupted_BT[chosen_BT & (kind_BT < 0.8)] = mask_id
    swapped_BT = chosen_BT & (kind_BT >= 0.8) & (kind_BT < 0.9)
    corrupted_BT[swapped_BT] = random_BT[swapped_BT]
    return corrupted_BT
