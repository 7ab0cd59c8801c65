"""Masked-language-model training on a corpus, of an existing encoder or of one from scratch.

Devlin et al. 2019, https://arxiv.org/abs/1810.04805: 15% of the tokens are chosen; of these, 80% become [MASK], 10% a
random token, and 10% stay unchanged. The head is newly initialised (dense, GELU, LayerNorm, decoder tied to the word
embeddings) and saved in a separate file in the encoder's folder. It is applied only at the chosen positions: with a
vocabulary of 30,522, its output layer would otherwise cost more than the encoder. The heads of published BERTs and
RoBERTas are read as they are.

Shape suffixes: B sentences, T tokens, M chosen positions, D width, V vocabulary.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from workflow_scripts.data.published import encoder_folder
from workflow_scripts.errors import ConfigError, DataError, TrainingError
from workflow_scripts.models.backbone import hidden_states, load_backbone, pooler_of
from workflow_scripts.models.packed import entry_of
from workflow_scripts.models.tokens import NATURAL, Shapes, TokenBatch, TokenisedText
from workflow_scripts.settings.sources import Sizes
from workflow_scripts.settings.training import ContinueMlm
from workflow_scripts.training import objective
from workflow_scripts.training.sampler import Sampler

HEAD_FILE = "mlm_head.safetensors"
ROUNDING = 1e-4
"""Maximum difference of two scores, as a share of the largest, that counts as rounding."""
REPEATED = -1
"""Target of a repeated position, which the loss ignores."""


def from_scratch(base: Path, sizes: Sizes) -> PreTrainedModel:
    """Return an encoder with random weights, of the architecture and vocabulary of ``base``, without a pooler.

    The weights are drawn by torch's generator, with the architecture's own initialisation.

    Raises:
        ConfigError: if the architecture's names of its sizes differ from BERT's.
    """
    config = AutoConfig.from_pretrained(base, local_files_only=True)
    values = {
        "num_hidden_layers": sizes.layers,
        "hidden_size": sizes.width,
        "num_attention_heads": sizes.heads,
        "intermediate_size": sizes.feed_forward,
    }
    if unknown := sorted(name for name in values if entry_of(config, name) is None):
        raise ConfigError(
            f"encoders: adapt.from_scratch: {config.model_type} has no setting {unknown[0]}. Choose a "
            "base of BERT's or RoBERTa's architecture."
        )
    config.update(values)
    model = AutoModel.from_config(config)  # type: ignore[no-untyped-call]
    model.pooler = None
    return model.eval()  # type: ignore[no-any-return]


class MaskedLanguageModel(nn.Module):
    """An encoder with a newly initialised prediction head."""

    def __init__(self, backbone: PreTrainedModel) -> None:
        super().__init__()
        width, vocabulary = backbone.config.hidden_size, backbone.config.vocab_size
        words: Any = backbone.get_input_embeddings()
        if words.embedding_dim != width:
            problem = (
                f"{backbone.config.model_type} embeds words at width {words.embedding_dim}, but its "
                f"states have {width}"
            )
            raise ConfigError(
                f"encoders: {problem}, and embeddings predict the words. Choose an encoder with one width."
            )
        self.backbone = backbone
        self.dense = nn.Linear(width, width)
        nn.init.normal_(self.dense.weight, std=0.02)
        nn.init.zeros_(self.dense.bias)
        self.norm = nn.LayerNorm(width, eps=1e-5)
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        if (pooler := pooler_of(backbone)) is not None:
            pooler.requires_grad_(False)  # not part of this loss; saved unchanged

    def forward(self, batch: TokenBatch, places_M: Tensor) -> Tensor:
        """Return scores over the vocabulary at M of the B * T positions, shape (M, V)."""
        hidden_MD = self.norm(F.gelu(self.dense(chosen_states(self.backbone, batch, places_M))))
        words_VD = self.backbone.get_input_embeddings().weight
        assert isinstance(words_VD, Tensor)
        return F.linear(hidden_MD, words_VD, self.bias)


class PublishedLanguageModel(nn.Module):
    """An encoder with the prediction head that it was published with."""

    def __init__(self, backbone: PreTrainedModel, head: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head

    def forward(self, batch: TokenBatch, places_M: Tensor) -> Tensor:
        """Return scores over the vocabulary at M of the B * T positions, shape (M, V)."""
        scores_MV: Tensor = self.head(chosen_states(self.backbone, batch, places_M))
        return scores_MV


def chosen_states(backbone: PreTrainedModel, batch: TokenBatch, places_M: Tensor) -> Tensor:
    """Return last hidden states at M of the B * T positions, shape (M, D)."""
    (states_BTD,) = hidden_states(backbone, batch, "last")
    return states_BTD.flatten(0, 1).index_select(0, places_M)


def save_head(folder: Path, model: MaskedLanguageModel) -> None:
    """Write the head of ``model`` into its encoder's folder."""
    state = model.state_dict()
    save_file({name: state[name] for name in state if not name.startswith("backbone.")}, folder / HEAD_FILE)


def load_masked_language_model(folder: Path) -> MaskedLanguageModel | PublishedLanguageModel:
    """Return an encoder with its trained head, from continue_mlm or its publisher, in evaluation mode.

    Raises:
        DataError: if the folder has no head, or its scores are not those of Transformers.
    """
    backbone = load_backbone(folder)
    if (folder / HEAD_FILE).exists():
        model = MaskedLanguageModel(backbone)
        model.load_state_dict(load_file(folder / HEAD_FILE), strict=False)
        return model.eval()
    published, loading = AutoModelForMaskedLM.from_pretrained(
        encoder_folder(folder),
        use_safetensors=True,
        local_files_only=True,
        dtype="float32",
        output_loading_info=True,
    )
    heads = dict(published.named_children())
    head = heads["cls"].get_submodule("predictions") if "cls" in heads else heads.get("lm_head")
    if head is None or any(name.startswith(("cls.", "lm_head.")) for name in loading["missing_keys"]):
        raise DataError(
            f"{folder}: no masked-language-model head. Start from an encoder with a head, or adapt this "
            "one (continue_mlm)."
        )
    scored, words = published.get_output_embeddings(), backbone.get_input_embeddings()
    assert isinstance(words, nn.Embedding)
    if torch.equal(scored.weight, words.weight):
        scored.weight = words.weight  # tied, as in the published model
    generator = PublishedLanguageModel(backbone, head).eval()
    _check_scores(folder, generator, published.eval())
    return generator


def _check_scores(folder: Path, model: PublishedLanguageModel, published: PreTrainedModel) -> None:
    """Check that an encoder and its head give Transformers' scores of words, for a few random tokens.

    Raises:
        DataError: with the largest difference.
    """
    draw, most = torch.Generator().manual_seed(0), published.config.vocab_size
    ids_BT = torch.randint(most, (3, 12), generator=draw)
    mask_BT = torch.ones_like(ids_BT)
    with torch.no_grad():
        scores = model(TokenBatch(ids_BT, mask_BT), torch.arange(ids_BT.numel()))
        expected = published(input_ids=ids_BT, attention_mask=mask_BT).logits.flatten(0, 1)
    away = float((scores - expected).abs().max() / expected.abs().max())
    if not away <= ROUNDING:
        problem = f"its masked-language-model head scores words {away:.2%} away from Transformers"
        raise DataError(f"{folder}: {problem}. Choose another encoder.")


def places_of(chosen_BT: Tensor, multiple: int = 1) -> Tensor:
    """Return chosen positions among all B * T; their number is rounded up to a ``multiple`` by repeating the first."""
    places_M = chosen_BT.flatten().nonzero().squeeze(1)
    return torch.cat([places_M, places_M[:1].expand(-len(places_M) % multiple)])


class Masking:
    """Choice and corruption of the tokens to predict, as functions of seed and step.

    Raises:
        ConfigError: if the tokeniser has no mask.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, probability: float, seed: int) -> None:
        if tokenizer.mask_token_id is None:
            raise ConfigError(
                "encoders: tokens are to be masked, but the tokeniser has no mask. Choose an encoder "
                "with a mask token."
            )
        self.mask_id = int(tokenizer.mask_token_id)
        self._special = torch.tensor(sorted(tokenizer.all_special_ids))
        self._vocabulary = len(tokenizer)
        self._probability = probability
        self._seed = seed

    def chosen(self, ids_BT: Tensor, step: int) -> tuple[Tensor, Tensor, np.random.Generator]:
        """Return the tokens with the lowest random numbers, never special ones.

        Returns:
            Whether each token is chosen, the random numbers (above 1 for special tokens), both (B, T), and the
            generator that drew them, for ``corrupted``.
        """
        draw = np.random.default_rng([self._seed, step, 1])
        chance_BT = torch.from_numpy(draw.random(tuple(ids_BT.shape)))
        chance_BT[torch.isin(ids_BT, self._special)] = 2.0
        return chance_BT < self._probability, chance_BT, draw

    def corrupted(self, ids_BT: Tensor, chosen_BT: Tensor, draw: np.random.Generator) -> Tensor:
        """Return ids with 80% of the chosen ones replaced by [MASK], and 10% by random ids, (B, T)."""
        kind_BT = torch.from_numpy(draw.random(tuple(ids_BT.shape)))
        random_BT = torch.from_numpy(draw.integers(self._vocabulary, size=tuple(ids_BT.shape)))
        masked_BT = torch.where(chosen_BT & (kind_BT < 0.8), self.mask_id, ids_BT)
        return torch.where(chosen_BT & (kind_BT >= 0.8) & (kind_BT < 0.9), random_BT, masked_BT)


class Objective(objective.Objective):
    """Masked-language modelling on a corpus."""

    def __init__(
        self,
        module: MaskedLanguageModel,
        text: TokenisedText,
        sampler: Sampler,
        tokenizer: PreTrainedTokenizerBase,
        settings: ContinueMlm,
        shapes: Shapes = NATURAL,
    ) -> None:
        self.module = module
        self._text = text
        self._sampler = sampler
        self._masking = Masking(tokenizer, settings.mlm_probability, settings.seed)
        self._shapes = shapes

    def inputs(self, step: int) -> tuple[TokenBatch, Tensor, Tensor]:
        """Return the step's sentences after masking, the chosen positions, and their true tokens or ``REPEATED``."""
        text = self._text.batch(self._sampler.rows_of(step))
        chosen_BT, masked_BT = self.mask(text.ids_BT, step)
        whole, masked = (
            TokenBatch(ids_BT, text.mask_BT).ready(self._shapes) for ids_BT in (text.ids_BT, masked_BT)
        )
        chosen_BT = F.pad(chosen_BT, (0, whole.ids_BT.shape[1] - chosen_BT.shape[1]))
        places_M = places_of(chosen_BT, self._shapes.width)
        true_M = whole.ids_BT.flatten()[places_M]
        true_M[int(chosen_BT.sum()) :] = REPEATED
        return masked, places_M, true_M

    def loss(self, inputs: tuple[TokenBatch, Tensor, Tensor]) -> objective.LossOutput:
        """Return the cross-entropy of the true tokens at the chosen positions."""
        batch, places_M, true_M = inputs
        return objective.LossOutput(
            F.cross_entropy(self.module(batch, places_M), true_M, ignore_index=REPEATED)
        )

    def mask(self, ids_BT: Tensor, step: int) -> tuple[Tensor, Tensor]:
        """Return chosen positions, at least one and never a special token, and the masked ids.

        Returns:
            Which positions are chosen (bool), and the ids after replacement, both (B, T).

        Raises:
            TrainingError: if the sentences consist of special tokens only.
        """
        chosen_BT, chance_BT, draw = self._masking.chosen(ids_BT, step)
        if bool((chance_BT > 1).all()):
            raise TrainingError(
                f"continue_mlm: no token to predict at step {step}; all are special. "
                "Remove empty sentences from the corpus."
            )
        chosen_BT.view(-1)[chance_BT.argmin()] = True
        return chosen_BT, self._masking.corrupted(ids_BT, chosen_BT, draw)
