"""Backbones: encoders of Transformers, their weights, hidden states, positions and tokenisers.

Shape suffixes: B sentences, T tokens, D width of the backbone.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from workflow_scripts.data.published import (
    ONLY_AS_PUBLISHED,
    applied_as_published,
    encoder_folder,
    longest_input,
    read_json,
    unreadable,
)
from workflow_scripts.errors import ConfigError, DataError, ErrorDetails
from workflow_scripts.models import TOKENISER_FILES
from workflow_scripts.models.dropout import DropoutMasks, patched_dropout
from workflow_scripts.models.packed import FAMILIES, entry_of, packed, packs
from workflow_scripts.models.readouts.base import Reads
from workflow_scripts.models.tokens import TokenBatch
from workflow_scripts.settings.readouts import Size, StartingPoint

_COUNTERS = re.compile(r"(.*\.)?(position_ids|token_type_ids|inv_freq)")
"""Tensors that old releases of Transformers saved and new ones compute."""

# Progress bars of loading weights would hide those of the work.
transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]


def check_fit(
    size_errors: Callable[[StartingPoint], Iterable[ErrorDetails]], *backbones: PreTrainedModel
) -> None:
    """Raise ConfigError unless encoders fit settings.

    Args:
        size_errors: Function that returns messages about settings that do not fit an encoder's sizes.
        backbones: The encoders.

    Raises:
        ConfigError: with the first message.
    """
    sizes = [
        Size(
            backbone.config.num_hidden_layers,
            backbone.config.hidden_size,
            kind=backbone.config.model_type,
        )
        for backbone in backbones
    ]
    if message := next(iter(size_errors(StartingPoint(sizes=sizes))), None):
        raise ConfigError(str(message))


def hidden_states(
    backbone: PreTrainedModel,
    batch: TokenBatch,
    reads: Reads,
    positions_BT: Tensor | None = None,
    masks: DropoutMasks | None = None,
) -> tuple[Tensor, ...]:
    """Return hidden states: the embedding output and each layer, (B, T, D), or the part that ``reads`` selects.

    Args:
        backbone: Any encoder; families of ``models.packed`` are computed on packed tokens.
        batch: The sentences.
        reads: The states to return; states of padding are arbitrary unless it is ``padded``.
        positions_BT: Positions other than 0, 1, 2, ...
        masks: Random numbers of the pass; None for no dropout, except that of an encoder in training mode.

    Raises:
        ConfigError: if a sentence has more tokens than the encoder has positions.
    """
    check_length(backbone, batch.ids_BT)
    positions = None if positions_BT is None else positions_BT + position_offset(backbone)
    if masks is None and backbone.training:
        masks = DropoutMasks(batch.packed())
    if reads != "padded" and packs(backbone):
        return tuple(packed(backbone, batch.packed(), masks).states(batch.ids_BT, positions, reads))
    several = reads in ("all", "padded")
    with patched_dropout(masks):
        output = backbone(
            input_ids=batch.ids_BT,
            attention_mask=attention_mask(backbone, batch),
            output_hidden_states=several,
            **({} if positions is None else {"position_ids": positions}),
            **({"use_cache": False} if entry_of(backbone.config, "use_cache") else {}),
        )
    if several:
        states: tuple[Tensor, ...] = output.hidden_states
        return states
    last_BTD: Tensor = output.last_hidden_state
    return (last_BTD[:, :1] if reads == "first" else last_BTD,)


def attention_mask(backbone: PreTrainedModel, batch: TokenBatch) -> Tensor:
    """Return the mask of a batch, in a form that Transformers reads without waiting for the GPU.

    For a mask (B, T) on a GPU, Transformers waits to learn whether the batch has padding; it uses a mask with four axes
    directly. That is possible for encoders that do not compute positions from the mask, and attend to all tokens or to
    all earlier ones.
    """
    config, mask_BT, length = backbone.config, batch.mask_BT, batch.mask_BT.shape[1]
    known = config.model_type in FAMILIES or "rotary_emb" in dict(backbone.named_children())
    window = entry_of(config, "sliding_window") or length
    if not (mask_BT.is_cuda and known and config._attn_implementation == "sdpa" and length <= window):
        return mask_BT
    mask_B1TT = mask_BT.bool()[:, None, None].expand(-1, -1, length, -1)
    is_causal = any(vars(module).get("is_causal") for module in backbone.modules())
    return mask_B1TT.tril() if is_causal else mask_B1TT


_DROPOUT = re.compile(r"(?!classifier|summary|pooler|qa|seq_)\w*(dropout|pdrop)\w*")
"""Configuration entries of dropout of hidden states and attention, in all families of encoders."""


def load_backbone(
    folder: Path,
    *,
    dropout: float | None = None,
    dtype: str = "float32",
    **overrides: object,
) -> PreTrainedModel:
    """Return the encoder of a model folder in evaluation mode; without a pooler if the folder has none.

    Args:
        folder: A folder written by ``save_pretrained``, with weights in safetensors.
        dropout: Dropout of hidden states and attention in training; None for the model's own.
        dtype: Precision of the weights; auto for the file's, which is half precision for many encoders of the Hub.
        overrides: Entries of the model's configuration to replace.

    Raises:
        ConfigError: if the folder has settings that only sentence-transformers applies, or modules do not read their
            dropout from the configuration.
        DataError: if the folder has no usable model, lacks weights, or has weights that the encoder does not have.
    """
    if setting := next(applied_as_published(folder), None):
        raise ConfigError(f"encoders: {setting}, applied by readout as_published only. Use method frozen.")
    if reason := read_json(folder / ONLY_AS_PUBLISHED).get("reason"):
        raise ConfigError(f"encoders: {reason} Use method frozen, which gives the published vectors.")
    backbone_folder = encoder_folder(folder)
    try:
        if dropout is not None:
            entries = AutoConfig.from_pretrained(backbone_folder, local_files_only=True).to_dict()
            numbers = (name for name, value in entries.items() if type(value) in (int, float))
            overrides |= {name: dropout for name in numbers if _DROPOUT.fullmatch(name)}
        model, loading = AutoModel.from_pretrained(
            backbone_folder,
            use_safetensors=True,
            local_files_only=True,
            dtype=dtype,
            output_loading_info=True,
            **overrides,
        )
    except (OSError, ValueError, TypeError, RuntimeError, SafetensorError) as error:
        raise unreadable(folder, "encoder", error) from error
    check_whole(folder, model, loading)
    if loading["missing_keys"]:
        model.pooler = None
    if entry_of(model.config, "is_causal") is False:
        attend_both_ways(model)
    if dropout is not None and dropout_rates(model) | {0.0} != {0.0, dropout}:
        rates = ", ".join(f"{rate:g}" for rate in sorted(dropout_rates(model))) or "nothing"
        raise ConfigError(
            f"method.dropout: {dropout:g}; modules of {model.config.model_type} drop {rates} whatever is "
            "configured. Set it to null, or choose another encoder."
        )
    model.eval()
    return model  # type: ignore[no-any-return]


def check_whole(folder: Path, encoder: PreTrainedModel, loading: Mapping[str, Iterable[str]]) -> None:
    """Raise DataError unless the weights of an encoder are those in its folder.

    Transformers draws missing weights at random and ignores surplus ones. The pooler may be missing. Heads after the
    encoder may be surplus: their names do not begin with a module of the encoder.

    Args:
        folder: The folder, for the message.
        encoder: The loaded encoder.
        loading: Transformers' report on loading it.

    Raises:
        DataError: with the first missing or surplus weight.
    """
    if missing := sorted(name for name in loading["missing_keys"] if not name.startswith("pooler.")):
        raise DataError(
            f"{folder}: {len(missing)} weights are missing, {missing[0]} first. Download the model again."
        )
    prefix, modules = f"{encoder.base_model_prefix}.", {name for name, _ in encoder.named_children()}
    inside = (
        name
        for name in loading["unexpected_keys"]
        if name.removeprefix(prefix).partition(".")[0] in modules and not _COUNTERS.fullmatch(name)
    )
    if surplus := sorted(inside):
        kind = type(encoder).__name__
        problem = f"{kind} of Transformers has no place for {len(surplus)} of its weights, {surplus[0]} first"
        raise DataError(f"{folder}: {problem}. Download the model again, or choose another encoder.")


def attend_both_ways(model: nn.Module) -> None:
    """Switch off the causal flag of a decoder's layers, which takes effect in batches without padding."""
    for module in model.modules():
        if "is_causal" in vars(module):
            setattr(module, "is_causal", False)  # noqa: B010  (torch types attributes as tensors or modules)


def dropout_rates(backbone: nn.Module) -> set[float]:
    """Return the dropout probabilities of hidden states and attention in training, including 0 if modules have none."""
    modules = [*backbone.modules()]
    layers = {module.p for module in modules if isinstance(module, nn.Dropout)}
    return layers | {
        value
        for module in modules
        for name, value in vars(module).items()
        if type(value) in (int, float) and _DROPOUT.fullmatch(name)
    }


def pooler_of(backbone: PreTrainedModel) -> nn.Module | None:
    """Return the pooler of an encoder; None without one."""
    return dict(backbone.named_children()).get("pooler")


def max_position_embeddings(backbone: PreTrainedModel) -> int | None:
    """Return the number of position embeddings of an encoder; None for rotary positions, which have no limit."""
    positions = _position_embeddings(backbone)
    return None if positions is None else len(positions.weight) - position_offset(backbone)


def longest_sentence(backbone: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """Return the maximum number of tokens of a sentence, which encoder and tokeniser both allow."""
    positions = max_position_embeddings(backbone)
    if positions is None:  # not every configuration has a maximum, and XLNet's is -1
        positions = entry_of(backbone.config, "max_position_embeddings")
    length = int(tokenizer.model_max_length)
    return min(length, positions) if positions and positions > 0 else length


def position_offset(backbone: PreTrainedModel) -> int:
    """Return the position id of a first token: 0, or in RoBERTa one more than the id of padding."""
    positions = _position_embeddings(backbone)
    return 0 if positions is None or positions.padding_idx is None else positions.padding_idx + 1


def _position_embeddings(backbone: PreTrainedModel) -> Any:
    """Return the position embeddings, an ``nn.Embedding``; None for encoders without, as with rotary positions."""
    try:
        return backbone.get_submodule("embeddings.position_embeddings")
    except AttributeError:
        return None


def check_length(backbone: PreTrainedModel, ids_BT: Tensor) -> None:
    """Check that sentences have no more tokens than the encoder has positions.

    Raises:
        ConfigError: with both numbers.
    """
    limit = max_position_embeddings(backbone)
    if limit is not None and ids_BT.shape[1] > limit:
        raise ConfigError(
            f"max_tokens: a sentence of {ids_BT.shape[1]} tokens; the encoder accepts at most {limit}. "
            f"Set max_tokens to {limit} or less."
        )


def load_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """Return the fast tokeniser of a model folder, with the maximum length for which the encoder was published.

    Raises:
        DataError: if the folder has none, or it has no padding token.
    """
    files = encoder_folder(folder)
    if not any((files / name).exists() for name in TOKENISER_FILES):  # else Transformers makes an empty one
        raise DataError(
            f"{folder}: no tokeniser; none of {', '.join(TOKENISER_FILES)}. Download the model again."
        )
    try:
        tokenizer = AutoTokenizer.from_pretrained(files, local_files_only=True, use_fast=True)
    except Exception as error:  # raised by any of the libraries that read its files
        raise unreadable(folder, "tokeniser", error) from error
    if tokenizer.pad_token_id is None:
        raise DataError(
            f"{folder}: the tokeniser has no padding token. Set pad_token in tokenizer_config.json."
        )
    tokenizer.model_max_length = longest_input(folder) or tokenizer.model_max_length
    return tokenizer


def shared_tokenizer(folders: Sequence[Path]) -> PreTrainedTokenizerBase:
    """Return the common tokeniser of several model folders.

    Raises:
        ConfigError: if their vocabularies differ.
    """
    tokenizers = list(map(load_tokenizer, folders))
    if not have_one_vocabulary(tokenizers):
        raise ConfigError(
            f"encoders: {folders[0]} and {folders[-1]} have different vocabularies. Join runs of one tokeniser."
        )
    return tokenizers[0]


def have_one_vocabulary(tokenizers: Sequence[PreTrainedTokenizerBase]) -> bool:
    """Return whether all tokenisers have the same vocabulary."""
    first = tokenizers[0]
    return all(other is first or other.get_vocab() == first.get_vocab() for other in tokenizers[1:])
