"""Toy encoders, tokenisers, texts and settings of trainings, the same on every machine: the one factory of them."""

import json
import string
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import yaml
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import AutoConfig, AutoModel, PreTrainedModel, PreTrainedTokenizerFast

from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.packed import PackedEncoder
from workflow_scripts.models.text_encoder import TextEncoder
from workflow_scripts.provenance.artefacts import job_record, writing_model_folder
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.settings.readouts import LAYERS, Pooling
from workflow_scripts.settings.training import Training
from workflow_scripts.training.mlm import MaskedLanguageModel, save_head

KINDS = ("bert", "roberta", "mpnet")
POOLERS = [pooler for pooler in LAYERS if pooler != "last_token"]
"""Those that encoders which attend both ways can be read by."""
WIDTH = 32
DEPTH = 2

WORDS = [
    "river", "town", "king", "city", "old", "new", "small", "large", "north", "south", "war", "year",
    "music", "school", "house", "church", "line", "game", "team", "film", "book", "law", "people",
    "water", "stone", "road", "field", "winter", "summer", "letter",
]  # fmt: skip
FILLERS = [
    "the", "a", "of", "in", "and", "to", "is", "was", "it", "for", "on", "as", "with", "by", "at", "from",
]  # fmt: skip
_SPECIALS = {
    "bert": {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"},
    "roberta": {"cls": "<s>", "pad": "<pad>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>"},
}
_SPECIALS |= {"mpnet": _SPECIALS["roberta"], "llama": _SPECIALS["bert"]}
_SIZE = {
    "hidden_size": WIDTH,
    "num_hidden_layers": DEPTH,
    "num_attention_heads": 4,
    "intermediate_size": 2 * WIDTH,
}
_IDS = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "max_position_embeddings": 66}
_OWN: dict[str, dict[str, int]] = {
    "bert": {"max_position_embeddings": 64},
    "roberta": _IDS | {"type_vocab_size": 1},
    "mpnet": _IDS,
    "llama": {},
}  # fmt: skip
"""Settings that the kinds of encoders do not share."""

TRAINING = {
    "epochs": None,
    "max_steps": 10,
    "batch_size": 4,
    "last_batch": "drop",
    "max_tokens": 16,
    "learning_rate": 0.01,
    "schedule": "linear",
    "min_lr_ratio": 0.0,
    "warmup_steps": 0,
    "weight_decay": 0.0,
    "max_gradient_norm": 1.0,
    "precision": "float32",
    "checkpoint_minutes": 0,
    "gpus": 1,
    "cpu_threads": 1,
}


def make_tokenizer(kind: str) -> PreTrainedTokenizerFast:
    """A lower-casing WordPiece tokeniser: whole words it knows, others letter by letter."""
    special = _SPECIALS[kind]
    letters = list(string.ascii_lowercase + string.digits)
    pieces = [
        *special.values(),
        *letters,
        *string.punctuation,
        *("##" + c for c in letters),
        *WORDS,
        *FILLERS,
    ]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=special["unk"]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    cls, sep = special["cls"], special["sep"]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{cls} $A {sep}",
        pair=f"{cls} $A {sep} $B {sep}",
        special_tokens=[(token, vocabulary[token]) for token in (cls, sep)],
    )
    named = {f"{name}_token": token for name, token in special.items()}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **named)


def make_backbone(kind: str, vocabulary: int, **settings: Any) -> PreTrainedModel:
    """A model of two layers, its weights drawn by numpy, in evaluation mode; ``llama`` is a causal decoder."""
    config = AutoConfig.for_model(kind, vocab_size=vocabulary, **_SIZE | _OWN[kind] | settings)
    model: PreTrainedModel = AutoModel.from_config(config)  # type: ignore[no-untyped-call]
    draw = np.random.default_rng(0)
    for parameter in model.parameters():
        centre = 1.0 if parameter.dim() == 1 and parameter.mean() == 1 else 0.0  # the weights of a LayerNorm
        values = centre + draw.normal(scale=0.15, size=tuple(parameter.shape))
        parameter.data = torch.from_numpy(values).to(torch.float32)
    return model.eval()


def write_model(folder: Path, kind: str, **settings: Any) -> Path:
    """Write model and tokeniser as a published encoder lies in a folder."""
    tokenizer = make_tokenizer(kind)
    make_backbone(kind, len(tokenizer), **settings).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    assert json.loads((folder / "config.json").read_text())["vocab_size"] == len(tokenizer)
    return folder


def encoder(folder: Path, pooler: str = "avg", layers: tuple[int, ...] | None = None) -> SentenceEncoder:
    """An encoder of a folder that pools, without a head."""
    readout = Pooling(kind="pooling", pooler=pooler, layers=layers)
    return SentenceEncoder(
        load_backbone(folder), load_tokenizer(folder), readout, head=False, head_at_test=False
    ).eval()


def save(folder: Path, encoder: TextEncoder) -> None:
    """Write an encoder as a job does, with a record beside it."""
    made = job_record("build_frozen", settings={}, inputs={}, outputs=[])
    folder.parent.mkdir(parents=True, exist_ok=True)
    with writing_model_folder(folder, made) as inside:
        encoder.save(inside)


def sentences(count: int, seed: int = 0) -> list[str]:
    """Distinct made-up sentences of 4 to 14 words."""
    draw = np.random.default_rng(seed)
    made: dict[str, None] = {}
    while len(made) < count:
        words = [str(draw.choice((FILLERS, WORDS)[place % 2])) for place in range(draw.integers(4, 15))]
        made[f"{' '.join(words).capitalize()}."] = None
    return list(made)


def training(**changes: Any) -> Training:
    """Settings of a training of ten steps, four sentences each."""
    return Training.parse(TRAINING | changes, "training")


def passes(monkeypatch, part="embedded"):
    """A list that grows with every call of a part of ``PackedEncoder``: the number of sentences in it."""
    sizes, whole = [], getattr(PackedEncoder, part)

    def noted(encoder, *arguments, **options):
        sizes.append(len(encoder._packing.first_B))
        return whole(encoder, *arguments, **options)

    monkeypatch.setattr(PackedEncoder, part, noted)
    return sizes


# Encoders of a chosen size with random weights, over made-up words that are one token each

_SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


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


def numbered_sentences(count: int, size: Size, seed: int = 0) -> list[str]:
    """Made-up sentences of four tokens up to a third more than are read; few words are frequent, as in a language."""
    draw = np.random.default_rng(seed)
    lengths = draw.integers(4, size.tokens * 4 // 3, count)
    most = size.vocabulary - len(_SPECIAL_TOKENS)
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


def write_random_encoder(folder: Path, size: Size, kind: str = "bert", name: str | None = None) -> Path:
    """Write an encoder with random weights, as a published one lies in a folder, by default named after its kind."""
    place = folder / (name or kind)
    random_encoder(size, kind).save_pretrained(place)
    numbered_tokenizer(size).save_pretrained(place)
    if kind != "llama":
        save_head(place, MaskedLanguageModel(load_backbone(place)))
    return place


def numbered_tokenizer(size: Size) -> PreTrainedTokenizerFast:
    """A tokenizer of made-up words, one token each."""
    words = [*_SPECIAL_TOKENS, *(f"w{number}" for number in range(size.vocabulary - len(_SPECIAL_TOKENS)))]
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    )
    named = {f"{token[1:-1].lower()}_token": token for token in _SPECIAL_TOKENS}
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, model_max_length=512, **named
    )


def training_of(size: Size, **changes: Any) -> Training:
    """The shared training settings with the batch of ``size``, and other changes."""
    block = yaml.safe_load((ROOT / "config/config.yaml").read_text("utf-8"))["training"]
    known = {name: value for name, value in block.items() if name in Training.model_fields}
    own = {"epochs": None, "max_steps": 1, "batch_size": size.batch, "max_tokens": size.tokens}
    return Training.parse(known | own | changes, "training")


def varied_backbone(start: Path, number: int = 0, **overrides: Any) -> PreTrainedModel:
    """The encoder of a folder, or another one with weights like its own."""
    made = load_backbone(start, **overrides)
    torch.manual_seed(number)
    for parameter in made.parameters() if number else ():
        parameter.data += 0.02 * torch.randn_like(parameter)
    return made
