"""Every training method of the configuration over toy encoders (``toys``), ready for its first step."""

import inspect
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import yaml
from transformers import PreTrainedTokenizerBase

from tests.support.toys import Size, numbered_sentences, varied_backbone
from workflow_scripts.methods import load_method
from workflow_scripts.models.backbone import load_tokenizer
from workflow_scripts.models.text_encoder import TextEncoder
from workflow_scripts.models.tokens import NATURAL, Shapes
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.settings.methods import read_method
from workflow_scripts.training.data import Teacher, TrainingData
from workflow_scripts.training.objective import Objective
from workflow_scripts.training.sampler import Sampler

Block = dict[str, Any]

DECODERS = ("llm2vec",)
"""Methods for decoders; others get a BERT."""
_POOL, _WORDS = 64, 300  # exemplars, and frequent words, that 3R reads


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
        "anchor": numbered_sentences(rows, size),
        "positive": numbered_sentences(rows, size, seed=1),
        "negative": numbered_sentences(rows, size, seed=2),
        "exemplar": numbered_sentences(_POOL, size, seed=3),
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
    starts = [varied_backbone(start, number, **config.overrides) for number in range(2 if several else 1)]
    torch.manual_seed(0)
    tokenizer = load_tokenizer(start)
    encoder = method.build(config, tokenizer, *starts).to(device)
    return encoder, tokenizer
