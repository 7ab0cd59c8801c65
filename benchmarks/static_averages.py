"""Exact sums of every token's states in every layer, against the bare forward pass over the same sentences."""

from collections.abc import Iterator

from benchmarks.harness import Measured, Timing, ratios
from benchmarks.material import minilm, wikipedia_sentences
from workflow_scripts.extraction.averages import sum_states
from workflow_scripts.extraction.passes import passes
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.tokens import tokenise

CODE = (
    "workflow_scripts/extraction/averages.py",
    "workflow_scripts/extraction/passes.py",
    "workflow_scripts/models",
)


def measure(timing: Timing) -> Iterator[Measured]:
    """Yield the ratio of passes over the same blocks with and without sums."""
    count = 40 if timing.small else 1000
    backbone = load_backbone(minilm())
    text = tokenise(load_tokenizer(minilm()), wikipedia_sentences(count), 128)

    def bare() -> None:
        for _states in passes(backbone, text, "float32", count // 2):
            pass

    seconds = timing.interleaved(
        {"sums": lambda: sum_states(backbone, text, count // 2, "float32"), "bare pass": bare}
    )
    yield Measured(
        "static_averages",
        ratios(seconds, "sums", "bare pass"),
        "times-the-time",
        "sums-of-all-layers-against-the-bare-forward-pass",
    )
