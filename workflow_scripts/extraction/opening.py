"""Load what a representation needs from a job's input files."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from workflow_scripts.columns.extraction import TOKEN_AVERAGES, TOKEN_DOCUMENTS, WORD_VECTORS
from workflow_scripts.extraction.representations import (
    EncoderVectors,
    TableVectors,
    WordTokeniser,
    random_tables,
    word_vocabulary,
)
from workflow_scripts.extraction.study import JobSettings, Opened
from workflow_scripts.extraction.weighting import Counts, Vocabulary, read_vocabulary
from workflow_scripts.extraction.wikitext import read_counts
from workflow_scripts.models.devices import granted_device
from workflow_scripts.models.encoder import load_backbone, load_tokenizer
from workflow_scripts.models.tokens import tokenise
from workflow_scripts.provenance.artefacts import check_model_folder, read_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.extraction.representations import (
    EncoderRepresentation,
    RandomRepresentation,
    WordRepresentation,
)

Vectors = NDArray[np.float32]


class Files(NamedTuple):
    """The files a representation is loaded from; None where it does not need one."""

    encoder: Path
    biases: Path
    words: Path | None
    documents: Path | None
    averages: Path | None

    @classmethod
    def of(cls, job: Job) -> "Files":
        """The files of a job that has the roles encoder, biases, words, documents and averages."""
        optional = {role: next(iter(job.many(role)), None) for role in ("words", "documents", "averages")}
        return cls(job.inputs["encoder"].parent, job.inputs["biases"], **optional)


def open_representation(settings: JobSettings, files: Files, gpus: int) -> Opened | None:
    """The representation, ready to compute vectors; None where its word vectors are missing.

    Args:
        settings: Of the job.
        files: What it is loaded from.
        gpus: What the job asked for, 0 or 1.
    """
    representation = settings.representation
    if isinstance(representation, WordRepresentation):
        assert files.words is not None
        return _open_words(read_table(files.words, WORD_VECTORS), files)
    check_model_folder(files.encoder)
    tokenizer = load_tokenizer(files.encoder)
    vocabulary = read_vocabulary(tokenizer, **read_biases(files.biases))
    if isinstance(representation, RandomRepresentation):
        tables = random_tables(representation, len(vocabulary.tokens))
        vectors = TableVectors(partial(tokenise, tokenizer), tables)
        return Opened(vectors, vocabulary, _counts(files.documents, vocabulary), depth=0)
    return _open_encoder(representation, settings, tokenizer, vocabulary, files, gpus)


def _open_encoder(
    representation: EncoderRepresentation,
    settings: JobSettings,
    tokenizer: PreTrainedTokenizerBase,
    vocabulary: Vocabulary,
    files: Files,
    gpus: int,
) -> Opened:
    backbone = load_backbone(files.encoder).to(granted_device(gpus))  # type: ignore[arg-type]
    averages = read_table(files.averages, TOKEN_AVERAGES) if files.averages else None
    vectors = EncoderVectors(backbone, tokenizer, settings.template, averages, representation.precision)
    depth = backbone.config.num_hidden_layers
    return Opened(vectors, vocabulary, _counts(files.documents, vocabulary), depth)


def _open_words(table: pa.Table, files: Files) -> Opened | None:
    if not len(table):
        return None
    words = table["word"].to_pylist()
    vectors_VD = table["vector"].combine_chunks().flatten().to_numpy().reshape(len(words), -1)
    with_unknown = np.concatenate([np.zeros((1, vectors_VD.shape[1]), np.float32), vectors_VD])
    vocabulary = word_vocabulary(words, **read_biases(files.biases))
    vectors = TableVectors(WordTokeniser(words), [with_unknown])
    return Opened(vectors, vocabulary, _counts(files.documents, vocabulary), depth=0)


def read_biases(path: Path) -> Mapping[str, list[str]]:
    """The lists ``frequent`` and ``punctuation`` of a file in resources/tokens."""
    lists: dict[str, list[str]] = json.loads(path.read_text("utf-8"))
    return lists


def _counts(path: Path | None, vocabulary: Vocabulary) -> Counts | None:
    return read_counts(read_table(path, TOKEN_DOCUMENTS), len(vocabulary.tokens)) if path else None
