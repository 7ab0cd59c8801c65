"""Static vectors of whole words in word2vec's text format, as X2Static saves them (its word_embeddings.py).

The first line is the number of words and the width; then a word and its values a line. ASSUME: the file's order is
that of falling frequency, as its vocabulary is made, so that the 100 most frequent words are its first 100 (F16).
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from workflow_scripts.errors import DataError
from workflow_scripts.extraction.sources import WordSource
from workflow_scripts.provenance import Input, sha256_of
from workflow_scripts.schemas import WORD_VECTORS


def locate(source: WordSource, data_root: Path | None) -> tuple[Path | None, dict[str, Input]]:
    """The file and what records say of it; None where it is not there.

    Raises:
        DataError: if its bytes are not the pinned ones.
    """
    path = data_root / source.path if data_root else None
    if path is None or not path.exists():
        return None, {}
    found = sha256_of(path)
    if source.sha256 and found != source.sha256:
        raise DataError(f"{path}: sha256 {found}; pinned {source.sha256}. Get the file again.")
    return path, {"vectors": Input(path=f"local:{source.path}", sha256=found)}


def read(path: Path, drop_frequent: int) -> pa.Table:
    """Words and vectors without the first ``drop_frequent``, columns of ``schemas.WORD_VECTORS``.

    Raises:
        DataError: naming the first line that is not what the header promises.
    """
    words: list[str] = []
    with path.open(encoding="utf-8", newline="\n") as file:
        size, width = _header(file.readline(), path)
        vectors = np.empty((size, width), dtype=np.float32)
        for number, line in enumerate(file, start=2):
            word, *values = line.rstrip().rsplit(" ", width)
            if len(words) == size or len(values) != width:
                found = f"{len(values)} values; the header says {size} words of {width}"
                raise DataError(f"{path}:{number}: {found}. Get the file again.")
            vectors[len(words)] = np.array(values, dtype=np.float32)
            words.append(word)
    if len(words) < size:
        raise DataError(f"{path}: {len(words)} words; the header says {size}. Get the file again.")
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
        raise DataError(f"{path}:1: {line[:40]!r}; expected two numbers. Get the file again.") from error
    return size, width
