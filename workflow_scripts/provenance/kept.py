"""What finished jobs made, kept until the next job of the same place is finished.

Snakemake deletes a job's outputs before the job starts, and starts every job behind one that was made again. A job
therefore leaves hard links to what it made in ``.kept`` beside it, which take no disk as long as the outputs are there;
its next success alone replaces them. A job whose key is that of what is kept would make the very same again: it puts
that in place and ends. So a mistake in a setting costs no model, and a file that was made again with equal contents
makes nothing behind it again.

Snakemake's own ``update()`` restores outputs where they were, but notes them as made by the job that failed (9.27.1):
the next run takes the old model for one of the new settings.
"""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import claimed, identity, read_record

FOLDER = ".kept"


def folder_of(artefacts: Sequence[Path]) -> Path:
    """Where a job keeps what it made; of its artefacts, files or model folders, the last by name stands for all."""
    last = max(artefacts)
    return last.parent / FOLDER / last.name


def keep(artefacts: Sequence[Path], timings: Sequence[Path], key: str) -> bool:
    """Keep what a job with this key made in the place of what was kept before; nothing, if any of it is not there.

    Args:
        artefacts: Files and model folders that carry a record; their names differ.
        timings: Files that carry none.
        key: The job's (``provenance.key``).

    Returns:
        Whether it is kept.
    """
    try:
        keys = {getattr(read_record(path), "key", None) for path in artefacts}
    except FileNotFoundError:  # Snakemake made the folder of a model that was never written
        return False
    if keys != {key} or not all(path.exists() for path in timings):  # another job's, which this one has left
        return False
    kept = folder_of(artefacts)
    with claimed(kept, Path.mkdir) as temporary:
        for path in (*artefacts, *timings):
            link(path, temporary / path.name)
        shutil.rmtree(kept, ignore_errors=True)
        temporary.rename(kept)
    return True


def forget(artefacts: Sequence[Path]) -> None:
    """Keep nothing any more of the job that made ``artefacts``."""
    shutil.rmtree(folder_of(artefacts), ignore_errors=True)


def holds(artefacts: Sequence[Path], timings: Sequence[Path], key: str) -> bool:
    """Whether all that a job with this key made is kept, and undamaged."""
    kept = folder_of(artefacts)
    try:
        keys = {_checked_key(kept / path.name) for path in artefacts}
    except (DataError, FileNotFoundError):
        return False
    return keys == {key} and all((kept / path.name).exists() for path in timings)


def _checked_key(artefact: Path) -> str:
    """The key in the record of an artefact that is as it was written."""
    identity(artefact)
    record = read_record(artefact)
    return record.key if record else ""


def put_back(artefacts: Sequence[Path], timings: Sequence[Path]) -> None:
    """Put what is kept in its places, where Snakemake dates it anew; it stays kept."""
    kept = folder_of(artefacts)
    for path in (*artefacts, *timings):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        link(kept / path.name, temporary)
        if path.is_dir():
            shutil.rmtree(path)
        temporary.replace(path)
        temporary.unlink(missing_ok=True)  # where both were links to one file already


def link(source: Path, target: Path) -> None:
    """Link a file, or every file of a folder; copy on file systems without hard links."""
    if source.is_dir():
        shutil.copytree(source, target, copy_function=link_or_copy)
    else:
        link_or_copy(str(source), str(target))


def link_or_copy(source: str, target: str) -> None:
    """Link a file; copy it on a file system without hard links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
