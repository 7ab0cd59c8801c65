"""What a page says of trainings: the checkpoint that was kept, the time, packages and settings behind them."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.errors import DataError
from workflow_scripts.provenance.record import Record
from workflow_scripts.reporting.layout import number
from workflow_scripts.settings.training import LastBatch, batches

_PACKAGES = ("torch", "transformers", "tokenizers")


class Checkpoint(NamedTuple):
    """The weights that a training kept: after so many steps, and their development score, if there is one."""

    step: int
    score: float | None


def steps(history: pa.Table) -> int:
    """Optimiser steps of a training (``columns.training.HISTORY``)."""
    return int(history["step"][-1].as_py()) if len(history) else 0


def kept(history: pa.Table) -> Checkpoint:
    """The checkpoint with the best development score, the first of equal ones; the last where none was measured."""
    rows = [row for row in history.to_pylist() if row["dev_score"] is not None]
    if not rows:
        return Checkpoint(steps(history), None)
    best = max(rows, key=lambda row: row["dev_score"])
    return Checkpoint(best["step"], best["dev_score"])


def checkpoint_text(checkpoint: Checkpoint) -> str:
    """A checkpoint as a page prints it."""
    score = "" if checkpoint.score is None else f" ({number(checkpoint.score, 3)})"
    return f"step {checkpoint.step:,}{score}"


def sentences(trained_steps: int, rows: int | None, batch_size: int, last_batch: LastBatch) -> int:
    """Sentences that so many steps read; where nobody knows the rows of the corpus, as if all batches were whole."""
    if rows is None or rows < batch_size:
        return trained_steps * batch_size
    per_epoch = batches(rows, batch_size, last_batch)
    epochs, more = divmod(trained_steps, per_epoch)
    return epochs * min(rows, per_epoch * batch_size) + more * batch_size


def seconds(speed: Path | None, batch_size: int, trained_steps: int) -> float | None:
    """How long the steps of a training took, its development scores included; None where nothing was measured.

    Args:
        speed: What ``training.session.write_speed`` wrote, if it is there. Of a training that was stopped and went on,
            it has the steps since: their mean stands for all.
        batch_size: Sentences a step.
        trained_steps: Number of all steps.

    Raises:
        DataError: if the file is damaged.
    """
    if speed is None or not speed.is_file():
        return None
    try:
        rates = pq.read_table(speed)["sentences_per_second"].to_pylist()
    except (pa.ArrowException, OSError, KeyError) as error:
        raise DataError(
            f"{speed}: no table of speeds. Delete it: the page says then that nothing was measured."
        ) from error
    return trained_steps * fmean(batch_size / rate for rate in rates) if rates else None


def between(numbers: Sequence[float | int]) -> str:
    """The lowest and the highest number as a page prints them; empty where there is none."""
    ends = (f"{end:,.0f}" for end in (min(numbers), max(numbers))) if numbers else ()
    return " to ".join(dict.fromkeys(ends))


def environments(records: Iterable[Record]) -> list[str]:
    """Packages and settings of the machine behind some trainings, each once."""
    return list(dict.fromkeys(map(_environment, records)))


def machines(records: Iterable[Record]) -> list[str]:
    """What some trainings computed on, each once; another machine may give the same bytes."""
    return list(dict.fromkeys(record.origin.gpu or record.origin.processor for record in records))


def _environment(record: Record) -> str:
    training = record.settings["training"]
    threads, gpus = training.get("cpu_threads"), training.get("gpus")
    parts = [f"{name} {record.packages[name]}" for name in _PACKAGES if name in record.packages]
    parts += [f"precision {training['precision']}"] if "precision" in training else []
    parts += [f"{threads} CPU thread{'s' if threads > 1 else ''}"] if threads else []
    parts += [f"up to {gpus} GPU{'s' if gpus > 1 else ''}"] if gpus else []
    return ", ".join(parts)
