"""How the runs of a table were trained: steps, batch, work, the checkpoint that was kept, and where."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from workflow_scripts.provenance.record import Record
from workflow_scripts.reporting.layout import number

_PACKAGES = ("torch", "transformers", "tokenizers")


class Trained(NamedTuple):
    """One run and seed: the record of its training, and its history (``columns.training.HISTORY``)."""

    record: Record
    history: pa.Table


class Checkpoint(NamedTuple):
    """The weights that a training kept: after so many steps, and their development score, if there is one."""

    step: int
    score: float | None


class TrainingLine(NamedTuple):
    """One run over its seeds, as a page prints it."""

    run: str
    steps: str
    batch: int
    sentences: int
    """That one seed read, repeats counted."""
    passes: float | None
    """Over the corpus; None where its size is not known."""
    tokens: int
    """Longer sentences are cut."""
    rate: str
    kept: Sequence[tuple[int, Checkpoint]]
    """Seed and what was kept of it."""


def kept(history: pa.Table) -> Checkpoint:
    """The checkpoint with the best development score, the first of equal ones; the last where none was measured."""
    rows = [row for row in history.to_pylist() if row["dev_score"] is not None]
    if not rows:
        return Checkpoint(_steps(history), None)
    best = max(rows, key=lambda row: row["dev_score"])
    return Checkpoint(best["step"], best["dev_score"])


def _steps(history: pa.Table) -> int:
    return int(history["step"][-1].as_py()) if len(history) else 0


def training_line(run: str, seeds: Sequence[Trained], corpora: Mapping[str, int]) -> TrainingLine:
    """How a run was trained.

    Args:
        run: Its name in the table.
        seeds: All of its seeds.
        corpora: Path of a corpus to the number of its rows.
    """
    record = seeds[0].record
    settings: dict[str, Any] = record.settings["training"]
    counts = sorted({_steps(one.history) for one in seeds})
    sentences = counts[-1] * int(settings["batch_size"])
    rows = corpora.get(record.inputs["corpus"].path) if "corpus" in record.inputs else None
    return TrainingLine(
        run=run,
        steps=" to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1]))),
        batch=settings["batch_size"],
        sentences=sentences,
        passes=sentences / rows if rows else None,
        tokens=settings["max_tokens"],
        rate=f"{settings['learning_rate']:.2g}",
        kept=[(int(one.record.wildcards["seed"]), kept(one.history)) for one in seeds],
    )


def checkpoint_text(checkpoint: Checkpoint) -> str:
    """A checkpoint as a page prints it."""
    score = "" if checkpoint.score is None else f" ({number(checkpoint.score, 3)})"
    return f"step {checkpoint.step:,}{score}"


def environments(trained: Iterable[Trained]) -> list[str]:
    """Machines and packages behind some trainings, each once."""
    return list(dict.fromkeys(_environment(one.record) for one in trained))


def _environment(record: Record) -> str:
    origin = record.origin
    threads = "1 thread" if origin.threads == 1 else f"{origin.threads} threads"
    capability = f" with {origin.capability}" if origin.capability else ""
    where = origin.gpu or f"{origin.processor}{capability}, {threads}"
    packages = [f"{name} {record.packages[name]}" for name in _PACKAGES if name in record.packages]
    return ", ".join([where, f"Python {origin.python}", *packages])
