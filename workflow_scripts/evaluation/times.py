"""Measured times, in a file separate from the scores."""

from pathlib import Path

import pyarrow as pa

from workflow_scripts.provenance.artefacts import write_table
from workflow_scripts.provenance.record import Record


def write_times(path: Path, times: pa.Table, record: Record) -> None:
    """Write times (columns of ``columns.scores.SCORES``), which differ from run to run, apart from the scores.

    Their record is that of the scores, but for the file it vouches for.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_table(path, times, record.model_copy(update={"outputs": [path.as_posix()]}))
