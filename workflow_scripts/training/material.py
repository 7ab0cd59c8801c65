"""What a method trains on: the columns of its corpus, tokenised when it asks for them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
from transformers import PreTrainedTokenizerBase

from workflow_scripts.artefacts import read_table
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.models.tokens import TokenisedText, tokenise
from workflow_scripts.schemas import SENTENCES, TRIPLES
from workflow_scripts.training.sampler import Sampler


class Material(NamedTuple):
    """Texts to train on, and which of them each step takes.

    ``columns`` holds ``anchor`` and, where the corpus has them, ``positive`` and ``negative``, all equally
    long and row by row together; a pool of exemplars stands beside them as ``exemplar``, of its own length.
    """

    columns: Mapping[str, Sequence[str]]
    tokenizer: PreTrainedTokenizerBase
    max_tokens: int
    sampler: Sampler

    def tokenised(self, column: str) -> TokenisedText:
        """Token ids of one column.

        Raises:
            ConfigError: if there is no such column.
        """
        if column not in self.columns:
            raise ConfigError(
                f"runs: the method reads the column {column}; its corpus has {', '.join(self.columns)}. "
                "Name another corpus, or another method."
            )
        return tokenise(self.tokenizer, self.columns[column], self.max_tokens)


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
