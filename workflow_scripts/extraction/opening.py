"""Load what a representation needs from a job's input files."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np

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
from workflow_scripts.settings.extraction.representations import RandomRepresentation, WordRepresentation


def open_representation(settings: JobSettings, job: Job) -> Opened | None:
    """The representation, ready to compute vectors; None where its word vectors are missing.

    Args:
        settings: Of the job.
        job: With the inputs encoder and biases, and the roles words, documents and averages where they are needed.
    """
    representation, biases = settings.representation, read_biases(job.inputs["biases"])
    if isinstance(representation, WordRepresentation):
        return _open_words(job, biases)
    folder = job.inputs["encoder"].parent
    check_model_folder(folder)
    tokenizer = load_tokenizer(folder)
    vocabulary = read_vocabulary(tokenizer, **biases)
    counts = _counts(job, vocabulary)
    if isinstance(representation, RandomRepresentation):
        tables = random_tables(representation, len(vocabulary.tokens))
        return Opened(TableVectors(partial(tokenise, tokenizer), tables), vocabulary, counts, depth=0)
    backbone = load_backbone(folder).to(granted_device(job.operational["gpu"]))  # type: ignore[arg-type]
    averages = next((read_table(path, TOKEN_AVERAGES) for path in job.many("averages")), None)
    vectors = EncoderVectors(backbone, tokenizer, settings.template, averages, representation.precision)
    return Opened(vectors, vocabulary, counts, backbone.config.num_hidden_layers)


def _open_words(job: Job, biases: Mapping[str, list[str]]) -> Opened | None:
    table = read_table(job.many("words")[0], WORD_VECTORS)
    if not len(table):
        return None
    words = table["word"].to_pylist()
    vectors_VD = table["vector"].combine_chunks().flatten().to_numpy().reshape(len(words), -1)
    with_unknown = np.concatenate([np.zeros((1, vectors_VD.shape[1]), np.float32), vectors_VD])
    vocabulary = word_vocabulary(words, **biases)
    vectors = TableVectors(WordTokeniser(words), [with_unknown])
    return Opened(vectors, vocabulary, _counts(job, vocabulary), depth=0)


def read_biases(path: Path) -> Mapping[str, list[str]]:
    """The lists ``frequent`` and ``punctuation`` of a file in resources/tokens."""
    lists: dict[str, list[str]] = json.loads(path.read_text("utf-8"))
    return lists


def _counts(job: Job, vocabulary: Vocabulary) -> Counts | None:
    tables = (read_table(path, TOKEN_DOCUMENTS) for path in job.many("documents"))
    return next((read_counts(table, len(vocabulary.tokens)) for table in tables), None)
