"""The grid of one representation and one task: all sentence vectors, their post-processings and scores in one job.

Token states stay in memory for one batch, sentence vectors for the job, post-processed vectors until they are scored.
Each post-processing is fitted once per key (mixing weight, draw, layers, weighting).
"""

import importlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product, repeat
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from transformers import PreTrainedTokenizerBase

from workflow_scripts.arrays import Integers
from workflow_scripts.columns import (
    EXTRACTION,
    FITTED,
    SENTENCES,
    TOKEN_AVERAGES,
    TOKEN_DOCUMENTS,
    WORD_VECTORS,
)
from workflow_scripts.data.tables import read_dataset_table
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.evaluation.base import Evaluator, Score, Task, gap, scored_tasks
from workflow_scripts.evaluation.geometry import isoscore
from workflow_scripts.extraction import postprocess
from workflow_scripts.extraction.layers import every_layer, layer_errors
from workflow_scripts.extraction.postprocess import Fit, FittedSample
from workflow_scripts.extraction.representations import (
    EncoderVectors,
    Key,
    SentenceVectors,
    TableVectors,
    Tokens,
    random_tables,
)
from workflow_scripts.extraction.vocabulary import (
    Counts,
    Vocabulary,
    count_documents,
    read_counts,
    read_vocabulary,
    split_into_words,
    word_vocabulary,
)
from workflow_scripts.extraction.weighting import Marks, Weights, weigh, weight_tables
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.devices import granted_device
from workflow_scripts.models.probe import check_large
from workflow_scripts.models.templates import PLAIN, pieces
from workflow_scripts.models.tokens import tokenise
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.extraction import (
    Idf,
    JobSettings,
    RandomRepresentation,
    Weighting,
    WikitextAverages,
    WordRepresentation,
)
from workflow_scripts.settings.names import Template

Cells = Mapping[Key, Sequence[str]]
"""Keys of sentence vectors, each with the post-processings to apply."""
Fits = Mapping[tuple[Key, str], Fit]
"""Fits to Wikitext, by key and post-processing."""
Scored = tuple[Key, str, Score]
"""A score of a key's vectors after a post-processing."""
Fitted = tuple[Key, str, Fit]
"""A fit of a post-processing to a key's vectors."""

_SHORT = 16  # tokens
_NO_KEY = Key(0.0, 0, "", "")


class Texts(NamedTuple):
    """The texts of a task.

    Shape suffixes: U distinct texts, N texts with repetitions.
    """

    distinct: Sequence[str]
    """The U distinct texts; with groups, distinct within their group."""
    groups_U: Integers
    """Number of each text's group (subset), from 0."""
    columns: Sequence[Integers]
    """The task's columns, as indices into ``distinct``."""

    @property
    def occurrences_N(self) -> Integers:  # noqa: N802
        """Return all texts of the task in order, to which post-processings are fitted."""
        return np.concatenate(self.columns)


class ReadyRepresentation(NamedTuple):
    """A representation that is ready to compute vectors."""

    vectors: EncoderVectors | TableVectors
    vocabulary: Vocabulary
    wikitext: Counts | None
    """Document frequencies of Wikitext; None if no weighting uses them."""
    depth: int
    """Number of layers of the encoder; 0 for static tables."""
    marks: Marks | None = None
    """Marks that tokeniser and template write around texts; None without any."""

    def pieces(self, text: str) -> list[int]:
        """Return the token ids of a short text."""
        ids: list[int] = self.vectors.tokens([text], _SHORT).raw.ids.tolist()
        return ids


def open_representation(settings: JobSettings, job: Job) -> ReadyRepresentation | None:
    """Return a loaded representation; None if its word vectors are missing.

    Args:
        settings: Settings of the job.
        job: Job with the inputs encoder and biases, and words, documents and averages if the representation needs them.
    """
    representation = settings.representation
    biases: dict[str, list[str]] = json.loads(job.input("biases").read_text("utf-8"))
    if isinstance(representation, WordRepresentation):
        return _open_words(job, biases)
    folder = job.input("encoder").parent
    tokenizer = load_tokenizer(folder)
    vocabulary = read_vocabulary(tokenizer, **biases)
    counts = _counts(job, vocabulary)
    if isinstance(representation, RandomRepresentation):
        tables = random_tables(representation, len(vocabulary.tokens))
        vectors = TableVectors(partial(tokenise, tokenizer), tables)
        return ReadyRepresentation(vectors, vocabulary, counts, 0, marks_of(tokenizer, PLAIN))
    check_large(folder)
    backbone = load_backbone(folder).to(granted_device(job.operational["gpu"]))  # type: ignore[arg-type]
    averages = next((read_table(path, TOKEN_AVERAGES) for path in job.inputs("averages")), None)
    removed = [number for kind in representation.remove for number in vocabulary.biased[kind]]
    encoded = EncoderVectors(
        backbone, tokenizer, settings.template, averages, representation.precision, removed
    )
    marks = marks_of(tokenizer, settings.template or PLAIN)
    return ReadyRepresentation(encoded, vocabulary, counts, backbone.config.num_hidden_layers, marks)


def marks_of(tokenizer: PreTrainedTokenizerBase, template: Template) -> Marks:
    """Return the number of times that tokeniser and template write each special token around a text."""
    before, after = pieces(template, tokenizer)
    return {mark: (before.count(mark), after.count(mark)) for mark in tokenizer.all_special_ids}


def _open_words(job: Job, biases: Mapping[str, list[str]]) -> ReadyRepresentation | None:
    table = read_table(job.input("words"), WORD_VECTORS)
    if not len(table):
        return None
    words = table["word"].to_pylist()
    vectors_VD = table["vector"].combine_chunks().flatten().to_numpy().reshape(len(words), -1)
    with_unknown = np.concatenate([np.zeros((1, vectors_VD.shape[1]), np.float32), vectors_VD])
    vocabulary = word_vocabulary(words, **biases)
    vectors = TableVectors(partial(split_into_words, words), [with_unknown])
    return ReadyRepresentation(vectors, vocabulary, _counts(job, vocabulary), depth=0)


def _counts(job: Job, vocabulary: Vocabulary) -> Counts | None:
    tables = (read_table(path, TOKEN_DOCUMENTS) for path in job.inputs("documents"))
    return next((read_counts(table, len(vocabulary.tokens)) for table in tables), None)


def plan(settings: JobSettings, depth: int) -> dict[Key, list[str]]:
    """Return the keys in the order of the blocks, each with its post-processings.

    Raises:
        ConfigError: if a block contains layers or masks that the representation lacks.
    """
    draws = settings.representation.draws if isinstance(settings.representation, RandomRepresentation) else 1
    if problems := [*layer_errors(settings, depth)]:
        raise ConfigError(str(problems[0].under("extraction.blocks")))
    cells: dict[Key, list[str]] = {}
    for block in settings.blocks:
        layers = every_layer(block.layers, depth)
        for axes in product(block.mixing_weights, range(draws), layers, block.weightings):
            key = Key(*axes)
            cells[key] = list(dict.fromkeys([*cells.get(key, []), *block.postprocessings]))
    return cells


def texts_of(task: Task, *, by_group: bool) -> Texts:
    """Return the texts of a task; by group, a text in two groups counts in both."""
    groups = task.groups if by_group and task.groups else repeat("")
    numbers: dict[tuple[str, str], int] = {}
    columns = []
    for column in task.columns:
        keys = zip(groups, column, strict=False)
        columns.append(np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64))
    groups_U = np.unique([group for group, _ in numbers], return_inverse=True)[1].astype(np.int64)
    return Texts([text for _, text in numbers], groups_U, columns)


def token_weights(
    settings: Iterable[tuple[str, Weighting]], tokens: Tokens, texts: Texts, opened: ReadyRepresentation
) -> dict[str, Weights]:
    """Return the weights of every token under every weighting."""
    size = len(opened.vocabulary.tokens)
    groups_U = texts.groups_U
    times_U = np.bincount(texts.occurrences_N, minlength=len(texts.distinct))
    weights = {}
    for name, weighting in settings:
        counted: list[Counts] = []
        if isinstance(weighting, Idf) and weighting.documents != "wikitext":
            text = tokens.raw if weighting.document_text == "raw" else tokens.filled
            numbers = groups_U if weighting.documents == "subset" else np.zeros_like(groups_U)
            parts = [np.flatnonzero(numbers == number) for number in range(int(numbers.max(initial=0)) + 1)]
            times = times_U if weighting.repeated == "each" else _once(texts.distinct, numbers)
            counted = [count_documents(text.subset(rows), size, times[rows]) for rows in parts]
        tables_GV = weight_tables(weighting, opened.vocabulary, opened.wikitext, counted)
        weights[name] = weigh(tokens.filled, tables_GV, groups_U, weighting, opened.marks)
    return weights


def _once(texts: Sequence[str], numbers_U: Integers) -> Integers:
    """Return 1 for the first occurrence of a text within its numbered part, and 0 for all others."""
    first: dict[tuple[int, str], int] = {}
    for row, text in enumerate(zip(numbers_U.tolist(), texts, strict=True)):
        first.setdefault(text, row)
    times_U = np.zeros(len(texts), np.int64)
    times_U[list(first.values())] = 1
    return times_U


def sentence_vectors(
    settings: JobSettings, cells: Cells, texts: Texts, max_tokens: int, opened: ReadyRepresentation
) -> Iterator[SentenceVectors]:
    """Yield the vectors of a task's distinct texts for every key, from one forward pass.

    Raises:
        DataError: if a text has no token, or vectors are not finite: the encoder is broken.
    """
    tokens = opened.vectors.tokens(texts.distinct, max_tokens)
    if not tokens.filled.lengths.all():
        text = texts.distinct[int(tokens.filled.lengths.argmin())]
        raise DataError(
            f"extraction: '{text}' has no token. Remove it from the data, or choose another encoder."
        )
    weights = token_weights(settings.weightings.items(), tokens, texts, opened)
    for embedded in opened.vectors.make(tokens.filled, weights, list(cells)):
        if not np.isfinite(embedded.vectors_UD).all():
            raise DataError(
                f"extraction: layers {embedded.key.layers}: some vectors are not finite. Make the encoder again."
            )
        yield embedded


def evaluate(
    settings: JobSettings, cells: Cells, task: Task, max_tokens: int, opened: ReadyRepresentation, fits: Fits
) -> Iterator[Scored]:
    """Yield all scores of every key and post-processing on one task."""
    if not task.columns:
        yield from ((_NO_KEY, "", score) for score in task.score())
        return
    weightings = settings.weightings.values()
    by_group = any(isinstance(weighting, Idf) and weighting.documents == "subset" for weighting in weightings)
    texts = texts_of(task, by_group=by_group)
    for embedded in sentence_vectors(settings, cells, texts, max_tokens, opened):
        sample = FittedSample(embedded.vectors_UD, texts.occurrences_N)
        for name in cells[embedded.key]:
            post = settings.postprocessings[name]
            fitted = fits[embedded.key, name] if post.fit == "wikitext" else postprocess.fit(post, sample)
            vectors_UD = postprocess.apply(post, fitted, sample)
            caveat = postprocess.caveat(post, fitted, sample, vectors_UD)
            for score in task.score(*(vectors_UD[rows] for rows in texts.columns)):
                note = "; ".join(filter(None, [score.note, embedded.note, caveat])) or None
                yield embedded.key, name, score._replace(note=note)


def learn(
    settings: JobSettings,
    cells: Cells,
    measured: Cells,
    wikitext: tuple[str, Sequence[str]],
    max_tokens: int,
    opened: ReadyRepresentation,
) -> tuple[list[Fitted], list[Scored]]:
    """Return fits of the post-processings in ``cells`` to Wikitext's vectors, for tasks, and IsoScores.

    ASSUME: on Wikitext, idf^T is idf^W. Figures 1 and 2 of the paper give every weighting one IsoScore, so it cannot
    depend on a task; post-processings marked ^W are fitted to the same vectors.

    Args:
        settings: Settings of the job.
        cells: All cells to fit or measure.
        measured: The cells whose IsoScore is computed.
        wikitext: Name of the dataset, and its distinct sentences.
        max_tokens: Longer sentences are truncated.
        opened: The representation.
    """
    fits, scores = list[Fitted](), list[Scored]()
    dataset, sentences = wikitext
    texts = texts_of(Task([sentences], list), by_group=False)
    for embedded in sentence_vectors(settings, cells, texts, max_tokens, opened):
        sample = FittedSample(embedded.vectors_UD)
        for name in cells[embedded.key]:
            post = settings.postprocessings[name]
            fitted = postprocess.fit(post, sample)
            if post.fit == "wikitext":
                fits.append((embedded.key, name, fitted))
            if name in measured.get(embedded.key, ()):
                value = isoscore(postprocess.apply(post, fitted, sample))
                score = Score(dataset, "", "isoscore", value, len(sentences), embedded.note or None)
                scores.append((embedded.key, name, score))
    return fits, scores


def absent(task: str) -> list[Scored]:
    """Return the single gap of a task whose dataset or word vectors are missing."""
    return [(_NO_KEY, "", gap(task, "no source of the dataset or of the word vectors is available"))]


def rows_of(representation: str, kind: str, scores: Iterable[Scored]) -> pa.Table:
    """Return scores as a table with the columns of ``columns.EXTRACTION``."""
    rows = [
        {
            "representation": representation,
            "kind": kind,
            **key._asdict(),
            "postprocess": name,
            **score._asdict(),
        }
        for key, name, score in scores
    ]
    assert all(row["value"] is None or np.isfinite(row["value"]) for row in rows)
    return pa.Table.from_pylist(rows, schema=EXTRACTION)


def fits_table(fits: Iterable[Fitted]) -> pa.Table:
    """Return fits as a table with the columns of ``columns.FITTED``."""
    rows = [
        {
            **key._asdict(),
            "postprocess": name,
            "part": part,
            "columns": array.shape[-1] if array.ndim == 2 else 0,
            "values": array.ravel(),
        }
        for key, name, fitted in fits
        for part, array in fitted.items()
    ]
    return pa.Table.from_pylist(rows, schema=FITTED)


def read_fits(table: pa.Table, wanted: Cells) -> dict[tuple[Key, str], Fit]:
    """Return the fits of the keys and post-processings in ``wanted``."""
    fits: dict[tuple[Key, str], Fit] = {}
    names = table.select([*Key._fields, "postprocess", "part", "columns"]).to_pylist()
    for number, row in enumerate(names):
        key = Key(*(row[field] for field in Key._fields))
        if row["postprocess"] in wanted.get(key, ()):
            values = table["values"][number].values.to_numpy()
            shape = (-1, row["columns"]) if row["columns"] else (-1,)
            fits.setdefault((key, row["postprocess"]), {})[row["part"]] = values.reshape(shape)
    return fits


def fit_wikitext(job: Job) -> None:
    """Fit post-processings to Wikitext's vectors of one representation, and measure isotropy (rule fit_wikitext)."""
    representation = job.wildcards["representation"]
    settings = JobSettings.parse(job.settings["learnt"], "extraction")
    measured = JobSettings.parse(job.settings["isotropy"], "extraction")
    wikitext = WikitextAverages.parse(job.settings["wikitext"], "extraction.wikitext")
    opened = open_representation(settings, job)
    if opened is None:
        fits, scores = list[Fitted](), absent(wikitext.dataset)
    else:
        table = job.read("sentences", SENTENCES).slice(0, wikitext.max_sentences)
        corpus = wikitext.dataset, list(dict.fromkeys(table["sentence"].to_pylist()))
        cells, shown = plan(settings, opened.depth), plan(measured, opened.depth)
        fits, scores = learn(settings, cells, shown, corpus, wikitext.max_tokens, opened)
    tables = {"fitted": fits_table(fits), "scores": rows_of(representation, "isotropy", scores)}
    job.write(tables, labels=[wikitext.label] if opened else [])


def extract_scores(job: Job) -> None:
    """Score all vectors of one representation on one task, from one forward pass (rule extract_scores)."""
    kind, representation, name = (job.wildcards[wildcard] for wildcard in ("kind", "representation", "task"))
    settings = JobSettings.parse(job.settings["job"], "extraction")
    scored = "sts" if kind == "geometry" else kind
    evaluator: Evaluator = importlib.import_module(f"workflow_scripts.evaluation.{scored}")
    config = evaluator.Config.parse(job.settings["suite"], f"suites.{scored}")
    table = read_dataset_table(job.input("dataset"))
    opened = open_representation(settings, job) if len(table) else None
    if opened is None:
        scores = absent(name)
    else:
        cells = plan(settings, opened.depth)
        fits: dict[tuple[Key, str], Fit] = {}
        for path in job.inputs("fitted"):
            fits |= read_fits(read_table(path, FITTED), cells)
        task = evaluator.load(name, table, config)
        scores = list(evaluate(settings, cells, task, config.max_tokens, opened, fits))
    table, labels = rows_of(representation, kind, scores), list[str]()
    if opened:
        labels += config.labels(scored_tasks(table), opened.pieces)
    job.write({"scores": table}, labels=labels)
