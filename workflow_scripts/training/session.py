"""What all training rules need around the loop: device, determinism, development score, speed."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from transformers import PreTrainedTokenizerBase

from workflow_scripts.errors import EXIT_TRY_AGAIN, DataError
from workflow_scripts.evaluation.correlation import cosine, spearman
from workflow_scripts.models.encoder import TextEncoder
from workflow_scripts.models.encoding import encode_tokens
from workflow_scripts.models.templates import tokenise_in
from workflow_scripts.settings.training import Training
from workflow_scripts.training import ranks
from workflow_scripts.training.loop import Preempted


def prepare(settings: Training, seed: int) -> torch.device:
    """Set threads, deterministic algorithms and the random state; returns the device to train on."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # required by deterministic algorithms
    torch.set_num_threads(settings.cpu_threads)
    torch.use_deterministic_algorithms(True)
    # Only shows who reads memory that nobody wrote, at a fiftieth of a step.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.manual_seed(seed)
    return ranks.device()


def development_score(
    encoder: TextEncoder, tokenizer: PreTrainedTokenizerBase, pairs: pa.Table, max_tokens: int
) -> Callable[[], float]:
    """A function that scores ``encoder`` in its current state: Spearman over all ``pairs`` (``columns.corpora.PAIRS``).

    Raises:
        DataError: if there are no pairs, or all are judged alike.
    """
    if not len(pairs):
        raise DataError(
            "development set: no pairs. Name a dataset in `development`, or, where the corpus has documents of "
            "several sentences, set corpora.<name>.dev_sentences."
        )
    gold = pairs["score"].to_numpy()
    if gold.min() == gold.max():
        found = f"all {len(gold)} judgements are {gold[0]:g}, by which no checkpoint can be chosen"
        raise DataError(f"development set: {found}. Name another dataset in `development`.")
    left, right = pairs["sentence1"].to_pylist(), pairs["sentence2"].to_pylist()
    row = {text: number for number, text in enumerate(dict.fromkeys(left + right))}
    left_P, right_P = ([row[text] for text in side] for side in (left, right))
    text = tokenise_in(encoder.template, tokenizer, list(row), max_tokens)

    def score() -> float:
        vectors_UD = encode_tokens(encoder, text)
        return spearman(gold, cosine(vectors_UD[left_P], vectors_UD[right_P]))

    return score


def write_speed(path: Path, seconds: dict[int, float], batch_size: int) -> None:
    """Write the sentences per second of each step, as if all batches had one size; not an artefact: runs differ."""
    path.parent.mkdir(parents=True, exist_ok=True)
    speed = [batch_size / s for s in seconds.values()]
    pq.write_table(pa.table({"step": list(seconds), "sentences_per_second": speed}), path)


@contextmanager
def try_again_when_stopped() -> Iterator[None]:
    """Exit with code 75 after a stop request or Ctrl-C: the checkpoint is written, and the job should be run again."""
    try:
        yield
    except (Preempted, KeyboardInterrupt) as stop:
        # By Ctrl-C before the first step or after the last.
        what = str(stop) or "stopped outside the training's steps; run the job again to go on"
        print(f"Preempted: {what}.", file=sys.stderr)  # noqa: T201
        sys.exit(EXIT_TRY_AGAIN)
