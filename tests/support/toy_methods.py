"""Encoders with random weights, made-up sentences, and every training method of the configuration over them."""

import inspect
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import yaml
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    AutoConfig,
    AutoModel,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

from workflow_scripts.methods import load_method
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.text_encoder import TextEncoder
from workflow_scripts.models.tokens import NATURAL, Shapes
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.settings.methods import read_method
from workflow_scripts.settings.training import Training
from workflow_scripts.training.data import Teacher, TrainingData
from workflow_scripts.training.mlm import MaskedLanguageModel, save_head
from workflow_scripts.training.objective import Objective
from workflow_scripts.training.sampler import Sampler

Block = dict[str, Any]

DECODERS = ("llm2vec",)
"""Methods for decoders; others get a BERT."""
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_POOL, _WORDS = 64, 300  # exemplars, and frequent words, that 3R reads


class Size(NamedTuple):
    """An encoder, and what it is trained on."""

    layers: int
    width: int
    heads: int
    feed_forward: int
    vocabulary: int
    batch: int
    tokens: int
    spread: float = 0.02
    """Standard deviation of the weights; BERT's."""


SMALL = Size(12, 64, 4, 128, 2_000, 8, 16)
BASE = Size(12, 768, 12, 3072, 30_522, 64, 32)
"""BERT-base, with the batch and the sentences of SimCSE's paper."""


class Trained(NamedTuple):
    """One method over one encoder, ready for its first step."""

    encoder: TextEncoder
    objective: Objective
    tokenizer: PreTrainedTokenizerBase


def blocks() -> dict[str, Block]:
    """The methods of config/methods.yaml by name, those underneath filled in; not what needs a published folder."""
    read = yaml.safe_load((ROOT / "config/methods.yaml").read_text("utf-8"))["methods"]
    own = {name: _without_the_shared_part(block) for name, block in read.items()}
    return {
        name: block | ({"base": own[block["base"]]} if "base" in block else {})
        for name, block in own.items()
        if block.get("readout", {}).get("kind") != "as_published"
    }


def is_trained(block: Block) -> bool:
    """Whether a method has an objective."""
    return hasattr(load_method(block["module"]), "Objective")


def _without_the_shared_part(block: Block) -> Block:
    left = {key: value for key, value in block.items() if key not in ("training", "development", "readings")}
    if left.get("weights") == "bfloat16":
        left["weights"] = "float32"  # since float32's rounding is what is compared
    return left


def sentences(count: int, size: Size, seed: int = 0) -> list[str]:
    """Made-up sentences of four tokens up to a third more than are read; few words are frequent, as in a language."""
    draw = np.random.default_rng(seed)
    lengths = draw.integers(4, size.tokens * 4 // 3, count)
    most = size.vocabulary - len(_SPECIAL)
    return [" ".join(f"w{min(word, most) - 1}" for word in draw.zipf(1.3, length)) for length in lengths]


def random_encoder(size: Size, kind: str = "bert") -> PreTrainedModel:
    """An encoder with random weights, the same on every machine."""
    torch.manual_seed(0)
    ids = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    config = AutoConfig.for_model(
        kind,
        vocab_size=size.vocabulary,
        hidden_size=size.width,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        intermediate_size=size.feed_forward,
        initializer_range=size.spread,
        **ids,
    )
    model: PreTrainedModel = AutoModel.from_config(config)  # type: ignore[no-untyped-call]
    return model


def write_encoder(folder: Path, size: Size, kind: str = "bert", name: str | None = None) -> Path:
    """Write an encoder with random weights, as a published one lies in a folder, by default named after its kind."""
    place = folder / (name or kind)
    random_encoder(size, kind).save_pretrained(place)
    tokenizer_of(size).save_pretrained(place)
    if kind != "llama":
        save_head(place, MaskedLanguageModel(load_backbone(place)))
    return place


def tokenizer_of(size: Size) -> PreTrainedTokenizerFast:
    """A tokenizer of made-up words, one token each."""
    words = [*_SPECIAL, *(f"w{number}" for number in range(size.vocabulary - len(_SPECIAL)))]
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    )
    named = {f"{token[1:-1].lower()}_token": token for token in _SPECIAL}
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, model_max_length=512, **named
    )


def training(size: Size, **changes: Any) -> Training:
    """The shared training settings with the batch of ``size``, and other changes."""
    block = yaml.safe_load((ROOT / "config/config.yaml").read_text("utf-8"))["training"]
    known = {name: value for name, value in block.items() if name in Training.model_fields}
    own = {"epochs": None, "max_steps": 1, "batch_size": size.batch, "max_tokens": size.tokens}
    return Training.parse(known | own | changes, "training")


def prepared(
    block: Block,
    folder: Path,
    size: Size,
    device: torch.device,
    rows: int = 256,
    sampler: Sampler | None = None,
    chunk: int | None = None,
    shapes: Shapes = NATURAL,
) -> Trained:
    """A method over the encoder in ``folder``, in its first state, on ``device``."""
    encoder, tokenizer = built(block, folder, device)
    vectors = np.random.default_rng(0).normal(size=(rows, size.width)).astype(np.float32)
    columns = {
        "anchor": sentences(rows, size),
        "positive": sentences(rows, size, seed=1),
        "negative": sentences(rows, size, seed=2),
        "exemplar": sentences(_POOL, size, seed=3),
        "word": [f"w{number}" for number in range(_WORDS)][: block.get("words")],
    }
    sampler = sampler or Sampler(rows, min(size.batch, rows), seed=3)
    data = TrainingData(columns, tokenizer, size.tokens, sampler, Teacher(vectors, 2), chunk, shapes)
    config = read_method(block, "methods")
    return Trained(encoder, load_method(block["module"]).Objective(config, encoder, data), tokenizer)


def built(block: Block, folder: Path, device: torch.device) -> tuple[TextEncoder, PreTrainedTokenizerBase]:
    """The model that a method trains or reads, with the encoder in ``folder``, and its tokeniser."""
    method = load_method(block["module"])
    config = read_method(block, "methods")
    start = folder / ("llama" if block.get("base", block)["module"] in DECODERS else "bert")
    several = any(p.kind is p.VAR_POSITIONAL for p in inspect.signature(method.build).parameters.values())
    starts = [backbone(start, number, **config.overrides) for number in range(2 if several else 1)]
    torch.manual_seed(0)
    tokenizer = load_tokenizer(start)
    encoder = method.build(config, tokenizer, *starts).to(device)
    return encoder, tokenizer


def backbone(start: Path, number: int = 0, **overrides: Any) -> PreTrainedModel:
    """The encoder of a folder, or another one with weights like its own."""
    made = load_backbone(start, **overrides)
    torch.manual_seed(number)
    for parameter in made.parameters() if number else ():
        parameter.data += 0.02 * torch.randn_like(parameter)
    return made
