"""Encoding, and a training step on [CLS], of encoders other than BERT, against sentence-transformers.

The encoders have MiniLM's depth and width, as in ``encoding`` and ``training_step``. Weights are random, which does not
change the amount of work.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import torch
from transformers import AutoConfig, AutoModel

from benchmarks.harness import THREADS, Measured, Timing, ratios
from benchmarks.material import minilm, wikipedia_sentences
from benchmarks.peers import Step, ours, peer, recipe, trainer
from tests.support.toys import SMALL, training_of
from workflow_scripts.methods import simcse
from workflow_scripts.models.backbone import load_backbone, load_tokenizer

CODE = (
    "config/methods.yaml",
    "benchmarks/peers.py",
    "workflow_scripts/losses",
    "workflow_scripts/training/objective.py",
    "workflow_scripts/methods/simcse.py",
    "workflow_scripts/models",
    "workflow_scripts/training",
)
FAMILIES: Mapping[str, Mapping[str, float]] = {
    "mpnet": {"intermediate_size": 1536},
    "distilbert": {"hidden_dim": 1536},  # not on packed tokens
}
"""Settings of each model type."""
SIZE = {"num_hidden_layers": 6, "hidden_size": 384, "num_attention_heads": 12}
SMALLER = {"num_hidden_layers": 2, "hidden_size": 48}
MAX_TOKENS = 128
"""Maximum length of a sentence in encoding."""
IDS = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"), 0)


def measure(timing: Timing) -> Iterator[Measured]:
    """Yield the ratios of each family, saved in its own folder with MiniLM's tokeniser."""
    size = SMALL._replace(batch=8 if timing.small else 64, tokens=32)
    texts = wikipedia_sentences(2 * size.batch)
    settings = training_of(size, max_steps=1, cpu_threads=THREADS)
    tokenizer = load_tokenizer(minilm())
    for kind, changes in FAMILIES.items():
        with tempfile.TemporaryDirectory() as folder:
            sizes = SIZE | (SMALLER if timing.small else {})
            config = AutoConfig.for_model(kind, vocab_size=len(tokenizer), **IDS, **sizes, **changes)
            torch.manual_seed(0)
            AutoModel.from_config(config).save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            step = Step(
                Path(folder), texts[: size.batch], settings, recipe("cls"), "cls", torch.device("cpu")
            )
            trained = {"semblance": ours(step), "sentence-transformers": trainer(step, timing.rounds + 1)}
            longer = training_of(size._replace(tokens=MAX_TOKENS))
            averaged = step._replace(texts=texts, settings=longer, method=recipe("avg"), pooler="avg")
            for name, ways in {"encode": encoding(averaged), "training_step_cls": trained}.items():
                faster = ratios(timing.interleaved(ways), "sentence-transformers", "semblance")
                yield Measured(
                    f"{name}_{kind}", faster, "times-as-fast", "semblance-against-sentence-transformers"
                )


def encoding(step: Step) -> Mapping[str, Callable[[], np.ndarray]]:
    """Return ways to encode, after a check that their vectors agree."""
    encoder = simcse.build(step.method, load_tokenizer(step.folder), load_backbone(step.folder))
    model = peer(step)
    ways: Mapping[str, Callable[[], np.ndarray]] = {
        "semblance": lambda: encoder.encode(step.texts, step.settings.max_tokens),
        "sentence-transformers": lambda: model.encode(step.texts, show_progress_bar=False),
    }
    mine, theirs = (way() for way in ways.values())
    assert np.abs(mine - theirs).max() < 1e-4
    return ways
