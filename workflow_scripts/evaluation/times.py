"""Times beside scores, in a file of their own."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def write_times(path: Path, times: pa.Table) -> None:
    """Write times (columns of ``schemas.SCORES``); no artefact, since they differ from run to run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(times, path)
