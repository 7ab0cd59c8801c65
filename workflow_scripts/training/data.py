"""Training data of a method: the columns of its corpus, tokenised on request, and auxiliary texts and vectors."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from workflow_scripts.columns import EXEMPLARS, SENTENCES, TEACHER, TRIPLES, WORD_COUNTS
from workflow_scripts.data.word_lists import cleaned, top_words
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.models.templates import tokenise_in
from workflow_scripts.models.tokens import NATURAL, Shapes, TokenBatch, TokenisedText
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.settings.names import Template
from workflow_scripts.training.sampler import Sampler


class Teacher(NamedTuple):
    """A teacher's vectors (N, D) of the anchors, float32, and the number of encoders they are summed over."""

    vectors: NDArray[np.float32]
    encoders: int


class TrainingData(NamedTuple):
    """Texts of a training, and the sampler of their rows.

    ``columns`` has ``anchor`` and, if the corpus has them, ``positive`` and ``negative``, all of the same length and in
    the same order; ``exemplar`` (a pool) and ``word`` (frequent words) are auxiliary columns of other lengths.
    """

    columns: Mapping[str, Sequence[str]]
    tokenizer: PreTrainedTokenizerBase
    max_tokens: int
    sampler: Sampler
    teacher: Teacher | None = None
    chunk: int | None = None
    """Number of sentences that are encoded at a time (``training.chunks``); None for the whole batch."""
    shapes: Shapes = NATURAL
    """Multiples to which the shapes of batches are rounded up."""

    def ready(self, batch: TokenBatch) -> tuple[TokenBatch, ...]:
        """Return the chunks of a batch, or the complete batch, ready for the device."""
        if self.chunk is None or self.chunk >= len(batch.ids_BT):
            return (batch.ready(self.shapes),)
        return tuple(batch.chunks(self.chunk))

    def tokenised(self, column: str, template: Template | None = None) -> TokenisedText:
        """Return token ids of one column, with each text inside ``template`` if it is not None.

        Raises:
            ConfigError: if the corpus lacks the column.
        """
        if column not in self.columns:
            raise ConfigError(
                f"runs: the method reads column {column}, but its corpus has only "
                f"{', '.join(self.columns)}. Choose a corpus with this column, or another method."
            )
        return tokenise_in(template, self.tokenizer, self.columns[column], self.max_tokens)


def read_columns(corpus: Path) -> dict[str, list[str]]:
    """Return the columns of a corpus of sentences or triples, without columns of only nulls.

    Raises:
        DataError: if the file is missing, damaged or of another form, or if only some rows of a column are null.
    """
    if corpus.exists() and pq.read_schema(corpus).names == SENTENCES.names:
        return {"anchor": read_table(corpus, SENTENCES)["sentence"].to_pylist()}
    table = read_table(corpus, TRIPLES)
    columns = {name: table[name].to_pylist() for name in TRIPLES.names if table[name].null_count < len(table)}
    for name, texts in columns.items():
        if None in texts:
            row = texts.index(None)
            raise DataError(
                f"{corpus}: row {row} has no {name}, but other rows have one. Remove the row or fill it in."
            )
    return columns


def read_auxiliary(
    exemplars: Sequence[Path], words: Sequence[Path], most_frequent: int | None
) -> dict[str, list[str]]:
    """Return the columns ``exemplar`` and ``word``, if their files are given.

    Args:
        exemplars: No file, or a pool of exemplars.
        words: No file, or the word counts of a corpus.
        most_frequent: Number of words, which are selected and cleaned like those of exemplar pools.

    Raises:
        DataError: if a file is missing or damaged, or has fewer words.
    """
    columns: dict[str, list[str]] = {}
    for path in exemplars:
        columns["exemplar"] = read_table(path, EXEMPLARS)["sentence"].to_pylist()
    for path in words:
        assert most_frequent is not None
        counts = read_table(path, WORD_COUNTS)
        columns["word"] = cleaned(top_words(counts, most_frequent))
    return columns


def read_teacher(files: Sequence[Path], rows: int) -> Teacher | None:
    """Return a teacher's vectors; None if no file is given.

    Raises:
        DataError: if the file is missing or damaged.
    """
    for path in files:
        table = read_table(path, TEACHER)
        flat = table["vector"].combine_chunks().flatten().to_numpy()
        return Teacher(flat.reshape(rows, -1), int(table["encoders"][0].as_py()))
    return None
