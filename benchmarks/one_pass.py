"""Grid of the extraction study on one task: one pass for all cells, against a job per cell and the bare pass.

15 sums of layers x 5 weightings x 9 post-processings, as BERT's 13 hidden states and two sums would give; MiniLM's 7
hidden states and eight sums of them take their place. A pass for each cell is measured on three cells, without the
start of the process, and multiplied by the number of cells. The task has few texts, so the work per cell is large.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from benchmarks.harness import Measured, Timing, ratios
from benchmarks.material import minilm, wikipedia_sentences
from workflow_scripts.columns import PAIRS
from workflow_scripts.evaluation import sts
from workflow_scripts.extraction import postprocess
from workflow_scripts.extraction.passes import passes
from workflow_scripts.extraction.representations import EncoderVectors
from workflow_scripts.extraction.study import JobSettings, ReadyRepresentation, evaluate, plan, texts_of
from workflow_scripts.extraction.vocabulary import count_documents, read_vocabulary
from workflow_scripts.models.backbone import load_backbone, load_tokenizer

CODE = (
    "workflow_scripts/extraction",
    "workflow_scripts/evaluation/correlation.py",
    "workflow_scripts/evaluation/sts.py",
    "workflow_scripts/models",
)
CELLS = 15 * 5 * 9
SUMS = ["1+last", "2+last", "3+last", "1+2+last", "0+last", "0+1+2+last", "4+last", "5+last"]
WEIGHTINGS = {
    "avg": {"kind": "uniform", "specials": True, "masks": True},
    "without_specials": {"kind": "uniform", "specials": False, "masks": True},
    "idf_wikitext": {
        "kind": "idf",
        "documents": "wikitext",
        "document_text": "raw",
        "formula": "documents",
        "unseen": "max",
        "repeated": "each",
    },
    "idf_task": {
        "kind": "idf",
        "documents": "task",
        "document_text": "raw",
        "formula": "documents",
        "unseen": "max",
        "repeated": "each",
    },
    "unbiased": {"kind": "unbiased"},
}
QUANTILE = {"kind": "quantile_uniform", "quantiles": 1000}
POSTPROCESSINGS = {
    "none": {"kind": "none", "fit": "task"},
    "normalise": {"kind": "normalise", "fit": "task"},
    "zscore": {"kind": "zscore", "fit": "task"},
    "quantile": QUANTILE | {"fit": "task"},
    "whiten": {"kind": "whiten", "fit": "task"},
    "abtt2": {"kind": "abtt", "fit": "task", "directions": 2},
    "zscore_w": {"kind": "zscore", "fit": "wikitext"},
    "quantile_w": QUANTILE | {"fit": "wikitext"},
    "whiten_w": {"kind": "whiten", "fit": "wikitext"},
}


def grid(layers: list[str], weightings: list[str], names: list[str]) -> JobSettings:
    """Return a function that scores some cells like a job."""
    block = {"mixing_weights": [0], "layers": layers, "weightings": weightings, "postprocessings": names}
    return JobSettings.model_validate(
        {
            "representation": {"kind": "encoder", "template": None, "precision": "float32"},
            "template": None,
            "blocks": [block],
            "weightings": {name: WEIGHTINGS[name] | {"label": name} for name in weightings},
            "postprocessings": {name: POSTPROCESSINGS[name] | {"label": name} for name in names},
        }
    )


def measure(timing: Timing) -> Iterator[Measured]:
    """Yield the ratios of the complete grid, three single cells, and a pass over the texts without readouts."""
    pairs = 20 if timing.small else 300
    sentences = wikipedia_sentences(2 * pairs)
    rows = [
        {"subset": "", "sentence1": first, "sentence2": second, "score": float(number % 6)}
        for number, (first, second) in enumerate(zip(sentences[::2], sentences[1::2], strict=True))
    ]
    config = sts.Config(datasets=["wiki"], max_tokens=128)
    task = sts.load("wiki", pa.Table.from_pylist(rows, schema=PAIRS), config)
    backbone, tokenizer = load_backbone(minilm()), load_tokenizer(minilm())
    vectors = EncoderVectors(backbone, tokenizer, None, None, "float32")
    vocabulary = read_vocabulary(tokenizer, ["the", "of", "a"], [".", ","])
    text = vectors.tokens(texts_of(task, by_group=False).distinct, 128).filled
    counts = count_documents(text, len(vocabulary.tokens))
    opened = ReadyRepresentation(vectors, vocabulary, counts, depth=backbone.config.num_hidden_layers)
    draw = np.random.default_rng(0).normal(size=(2000, backbone.config.hidden_size)).astype(np.float32)
    learnt = {
        name: postprocess.fit(
            grid(["last"], ["avg"], [name]).postprocessings[name], postprocess.FittedSample(draw)
        )
        for name in POSTPROCESSINGS
    }

    def cells(settings: JobSettings) -> int:
        wanted = plan(settings, opened.depth)
        fits = {(key, name): learnt[name] for key, names in wanted.items() for name in names}
        return len({(key, name) for key, name, _ in evaluate(settings, wanted, task, 128, opened, fits)})

    def bare() -> None:
        for _states in passes(backbone, text, "float32"):
            pass

    whole = grid(["each", *SUMS], list(WEIGHTINGS), list(POSTPROCESSINGS))
    assert cells(whole) == CELLS
    some = [("2", "avg", "none"), ("1+last", "idf_task", "quantile"), ("last", "avg", "whiten")]
    singles = [grid([layers], [weighting], [name]) for layers, weighting, name in some]
    seconds = timing.interleaved(
        {
            "grid": lambda: cells(whole),
            "bare pass": bare,
            "three cells": lambda: [cells(single) for single in singles],
        }
    )
    faster = [ratio * CELLS / len(some) for ratio in ratios(seconds, "three cells", "grid")]
    yield Measured("one_pass_grid", faster, "times-as-fast", "one-pass-against-a-pass-a-cell")
    yield Measured(
        "one_pass_cost",
        ratios(seconds, "grid", "bare pass"),
        "times-the-time",
        "grid-of-675-cells-against-the-bare-forward-pass",
    )
