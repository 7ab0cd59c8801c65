"""Models of runs, for figures that look inside them."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from transformers import PreTrainedTokenizerBase

from workflow_scripts.errors import ConfigError
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.folders import load_encoder
from workflow_scripts.reporting.records import run_and_seed


def single_encoders(
    records: Iterable[Path],
) -> Iterator[tuple[str, int, SentenceEncoder, PreTrainedTokenizerBase]]:
    """Load one model after the other: run, seed, encoder and tokenizer.

    Raises:
        ConfigError: if one consists of several encoders.
    """
    for path in records:
        encoder, tokenizer = load_encoder(path.parent)
        run, seed = run_and_seed(path)
        if not isinstance(encoder, SentenceEncoder):
            raise ConfigError(f"{path}: {run} holds several encoders, and the figure shows one. Name others.")
        yield run, seed, encoder, tokenizer
