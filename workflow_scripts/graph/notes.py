"""Notes that the graph keeps below ``.snakemake`` for the next process: they can be made again at any time."""

import os
from pathlib import Path


def write_note(path: Path, text: str) -> None:
    """Write a note whole or not at all.

    ``artefacts.atomic`` would do it too, but takes PyArrow along, which a dry run can do without.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(text, "utf-8")
    temporary.replace(path)
