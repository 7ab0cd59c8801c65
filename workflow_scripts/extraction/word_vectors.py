"""Static vectors of whole words, from a text file or an installed package.

X2Static saves word2vec's text format (its word_embeddings.py): the first line has the number of words and the width,
every other line a word and its values. A package contains an array and a table of its words. ASSUME: words are in
descending order of frequency, as in the vocabularies of X2Static and GloVe, so the 100 most frequent words come first
(F16).
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from workflow_scripts.columns import WORD_VECTORS
from workflow_scripts.data.sources import SourcePlan, as_pinned, check_planned, expected
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.job import Job
from workflow_scripts.provenance.record import Input, gap_label
from workflow_scripts.settings.extraction import WordRepresentation

_AGAIN = "Obtain the file again."


def locate(
    representation: WordRepresentation, data_root: Path | None
) -> tuple[dict[str, Path], dict[str, Input]]:
    """Return the files by role, and their entries for the record; both empty if a file is missing.

    Raises:
        DataError: if the hash of a file differs from the pinned one.
    """
    source = representation.source
    root = source.root(data_root)
    files = {role: root / file.path for role, file in source.files.items()} if root else {}
    if not files or not all(path.is_file() for path in files.values()):
        return {}, {}
    return files, {
        role: as_pinned(files[role], f"{source.prefix}{file.path}", file.sha256, _AGAIN)
        for role, file in source.files.items()
    }


def read(files: dict[str, Path], drop_frequent: int) -> pa.Table:
    """Return words and vectors after the first ``drop_frequent``, with the columns of ``columns.WORD_VECTORS``.

    Args:
        files: ``vectors``, and ``words`` if the words are in a separate file.
        drop_frequent: Number of words to skip.

    Raises:
        DataError: with the file, and the line of a text file, if it has another format.
    """
    if "words" in files:
        words = pq.read_table(files["words"])[0].to_pylist()
        vectors_VD = np.load(files["vectors"])
        if vectors_VD.dtype != np.float32 or vectors_VD.ndim != 2 or len(vectors_VD) != len(words):
            problem = f"{vectors_VD.dtype} {vectors_VD.shape} for {len(words)} words"
            raise DataError(f"{files['vectors']}: {problem}; expected a row of float32 for each. {_AGAIN}")
    else:
        words, vectors_VD = _read_text(files["vectors"])
    kept_VD = np.ascontiguousarray(vectors_VD[drop_frequent:])
    offsets = pa.array(np.arange(len(kept_VD) + 1) * kept_VD.shape[1], pa.int64())
    return pa.table(
        [
            pa.array(np.arange(drop_frequent + 1, len(words) + 1), pa.int32()),
            pa.array(words[drop_frequent:], pa.string()),
            pa.LargeListArray.from_arrays(offsets, pa.array(kept_VD.ravel())),
        ],
        schema=WORD_VECTORS,
    )


def _read_text(path: Path) -> tuple[list[str], NDArray[np.float32]]:
    """Return words and vectors (V, D) from word2vec's text format."""
    words: list[str] = []
    number = 1
    with path.open(encoding="utf-8", newline="\n") as file:
        try:
            size, width = map(int, file.readline().split())
            vectors_VD = np.empty((size, width), dtype=np.float32)
            for line in file:
                number += 1
                word, *values = line.rstrip().rsplit(" ", width)
                vectors_VD[len(words)] = np.array(values, dtype=np.float32).reshape(width)
                words.append(word)
        except (ValueError, IndexError) as error:
            form = "the number of words and the width, then a line for each word"
            raise DataError(f"{path}:{number}: {error}; expected {form}. {_AGAIN}") from error
    if len(words) < size:
        raise DataError(f"{path}: {len(words)} words instead of the header's {size}. {_AGAIN}")
    return words, vectors_VD


def read_word_vectors(job: Job) -> None:
    """Write static word vectors, from a text file or a package, as a table (rule read_word_vectors).

    If a file is missing, the table is empty, and a label describes the gap.
    """
    name = job.wildcards["representation"]
    key = f"extraction.representations.{name}"
    representation = WordRepresentation.parse(job.settings["representation"], key)
    files, origin = locate(representation, job.workplace.data_root)
    check_planned(key, SourcePlan.parse(job.settings["source"], "source"), origin.values())
    if not files:
        gap = gap_label(f"{name}: not found; expected {expected(representation.source)}")
        job.write({"vectors": WORD_VECTORS.empty_table()}, labels=[gap])
        return
    vectors = read(files, representation.drop_frequent)
    job.write({"vectors": vectors}, external=origin, labels=[representation.label])
