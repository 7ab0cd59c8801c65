"""Static vectors of whole words in word2vec's text format, as X2Static saves them (its word_embeddings.py).

The first line holds the number of words and the width; each further line a word and its values. ASSUME: words are in
order of falling frequency, as X2Static builds its vocabulary, so that the 100 most frequent words come first (F16).
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from workflow_scripts.columns.extraction import WORD_VECTORS
from workflow_scripts.errors import DataError
from workflow_scripts.extraction.representations import WordRepresentation
from workflow_scripts.provenance.record import Input, sha256_of


def locate(
    representation: WordRepresentation, data_root: Path | None
) -> tuple[Path | None, dict[str, Input]]:
    """The file and its entry for the record; None where the file is missing.

    Raises:
        DataError: if its hash is not the pinned one.
    """
    path = data_root / representation.path if data_root else None
    if path is None or not path.exists():
        return None, {}
    found = sha256_of(path)
    if representation.sha256 and found != representation.sha256:
        raise DataError(
            f"{path}: sha256 is {found}, expected {representation.sha256}. Download the file again."
        )
    return path, {"vectors": Input(path=f"local:{representation.path}", sha256=found)}


def read(path: Path, drop_frequent: int) -> pa.Table:
    """Words and vectors after the first ``drop_frequent``, columns of ``columns.extraction.WORD_VECTORS``.

    Raises:
        DataError: naming the first line that does not match the header.
    """
    words: list[str] = []
    with path.open(encoding="utf-8", newline="\n") as file:
        size, width = _header(file.readline(), path)
        vectors = np.empty((size, width), dtype=np.float32)
        for number, line in enumerate(file, start=2):
            word, *values = line.rstrip().rsplit(" ", width)
            if len(words) == size or len(values) != width:
                found = f"{len(values)} values; the header says {size} words of {width} values"
                raise DataError(f"{path}:{number}: {found}. Download the file again.")
            vectors[len(words)] = np.array(values, dtype=np.float32)
            words.append(word)
    if len(words) < size:
        raise DataError(f"{path}: {len(words)} words; the header says {size}. Download the file again.")
    kept = vectors[drop_frequent:]
    offsets = pa.array(np.arange(len(kept) + 1) * width, pa.int64())
    return pa.table(
        [
            pa.array(np.arange(drop_frequent + 1, size + 1), pa.int32()),
            pa.array(words[drop_frequent:], pa.string()),
            pa.LargeListArray.from_arrays(offsets, pa.array(kept.ravel())),
        ],
        schema=WORD_VECTORS,
    )


def _header(line: str, path: Path) -> tuple[int, int]:
    try:
        size, width = map(int, line.split())
    except ValueError as error:
        raise DataError(
            f"{path}:1: {line[:40]!r}; expected the number of words and the width. Download the file again."
        ) from error
    return size, width
