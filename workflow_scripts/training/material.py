"""What a method trains on: the columns of its corpus, tokenised when it asks for them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from workflow_scripts.artefacts import read_table
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.models.templates import Template, tokenise_in
from workflow_scripts.models.tokens import TokenisedText
from workflow_scripts.schemas import EXEMPLARS, SENTENCES, TEACHER, TRIPLES, WORD_COUNTS
from workflow_scripts.training.sampler import Sampler


class Teacher(NamedTuple):
    """A teacher's vectors (N, D) of the anchors, float32, summed over so many encoders."""

    vectors: NDArray[np.float32]
    encoders: int


class Material(NamedTuple):
    """Texts to train on, and which of them each step takes.

    ``columns`` holds ``anchor`` and, where the corpus has them, ``positive`` and ``negative``, all equally
    long and row by row together; ``exemplar`` (a pool) and ``word`` (frequent words) stand beside them, of
    their own lengths.
    """

    columns: Mapping[str, Sequence[str]]
    tokenizer: PreTrainedTokenizerBase
    max_tokens: int
    sampler: Sampler
    teacher: Teacher | None = None

    def tokenised(self, column: str, template: Template | None = None) -> TokenisedText:
        """Token ids of one column, inside ``template`` if there is one.

        Raises:
            ConfigError: if there is no such column.
        """
        if column not in self.columns:
            raise ConfigError(
                f"runs: the method reads the column {column}; its corpus has {', '.join(self.columns)}. "
                "Name another corpus, or another method."
            )
        return tokenise_in(template, self.tokenizer, self.columns[column], self.max_tokens)


def read_columns(corpus: Path) -> dict[str, list[str]]:
    """The columns of a corpus, sentences or triples; a column of triples that is null throughout is left out.

    Raises:
        DataError: if the file is missing, damaged, neither, or has gaps.
    """
    if corpus.exists() and pq.read_schema(corpus).names == SENTENCES.names:
        return {"anchor": read_table(corpus, SENTENCES)["sentence"].to_pylist()}
    table = read_table(corpus, TRIPLES)
    found = {name: table[name].to_pylist() for name in TRIPLES.names if table[name].null_count < len(table)}
    for name, texts in found.items():
        if None in texts:
            raise DataError(f"{corpus}: row {texts.index(None)} has no {name}, others have. Drop or fill it.")
    return found


def read_beside(
    exemplars: Sequence[Path], words: Sequence[Path], most_frequent: int | None
) -> dict[str, list[str]]:
    """The columns ``exemplar`` and ``word``, each where its file is given.

    Args:
        exemplars: No file, or a pool of exemplars.
        words: No file, or the word counts of a corpus.
        most_frequent: How many words are read.

    Raises:
        DataError: if a file is missing or damaged, or has fewer words.
    """
    columns: dict[str, list[str]] = {}
    for path in exemplars:
        columns["exemplar"] = read_table(path, EXEMPLARS)["sentence"].to_pylist()
    for path in words:
        assert most_frequent is not None
        columns["word"] = read_table(path, WORD_COUNTS)["word"].to_pylist()[:most_frequent]
        if len(columns["word"]) < most_frequent:
            raise DataError(
                f"{path}: {len(columns['word'])} words, {most_frequent} are asked for. Ask for fewer."
            )
    return columns


def read_teacher(files: Sequence[Path], rows: int) -> Teacher | None:
    """A teacher's vectors; None where no file is given.

    Raises:
        DataError: if the file is missing or damaged, or is of another corpus.
    """
    for path in files:
        table = read_table(path, TEACHER)
        if len(table) != rows:
            raise DataError(
                f"{path}: {len(table)} vectors; the corpus has {rows} rows. Rerun encode_teacher."
            )
        flat = table["vector"].combine_chunks().flatten().to_numpy()
        return Teacher(flat.reshape(rows, -1), int(table["encoders"][0].as_py()))
    return None
