"""What a training has done so far, for whoever watches it: its history, beside its checkpoints.

It is no artefact: nothing that makes a number reads it, and it goes when the training is finished. It may be ahead of
the last checkpoint, from which a stopped training goes on.
"""

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.columns.training import HISTORY
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import atomic

FILE = "history.parquet"
_STEPS, _SECONDS = b"semblance.steps", b"semblance.seconds_per_step"


class Live(NamedTuple):
    """A training that is not finished."""

    history: pa.Table
    """``columns.training.HISTORY``, a row per step so far."""
    steps: int
    """That it will take in all."""
    seconds_per_step: float
    """Lately, with evaluations and checkpoints."""


def write_live(folder: Path, history: pa.Table, steps: int, seconds_per_step: float) -> None:
    """Write the history of a training so far, whole or not at all.

    Args:
        folder: Of its checkpoints; made where it is not there.
        history: A row per step (``columns.training.HISTORY``).
        steps: That it will take in all.
        seconds_per_step: Lately, with evaluations and checkpoints.
    """
    folder.mkdir(parents=True, exist_ok=True)
    told = {_STEPS: str(steps).encode(), _SECONDS: repr(seconds_per_step).encode()}
    with atomic(folder / FILE) as temporary:
        pq.write_table(history.cast(HISTORY).replace_schema_metadata(told), temporary, compression="zstd")


def read_live(folder: Path) -> Live | None:
    """The history that a training has left beside its checkpoints; None where it has left none yet.

    Raises:
        DataError: if the file is damaged.
    """
    try:
        history = pq.read_table(folder / FILE)
        told = history.schema.metadata
        return Live(history.cast(HISTORY), int(told[_STEPS]), float(told[_SECONDS]))
    except FileNotFoundError:
        return None
    except (pa.ArrowInvalid, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{folder / FILE}: {error}. Delete it; the training writes it again.") from error
