"""The whole grid of one source and task: every representation once, every shaping and score of it in the same job.

Token states of a batch live as long as the batch; sentence vectors of a representation as long as the job; shaped
vectors as long as their scores. Fits are made once for each representation and post-processing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from workflow_scripts.config import Slice
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.evaluation.scores import Score, gap
from workflow_scripts.extraction import postprocess
from workflow_scripts.extraction.layers import every_layer, parse_layers
from workflow_scripts.extraction.postprocess import Fit, Postprocessing
from workflow_scripts.extraction.scoring import Task
from workflow_scripts.extraction.sources import (
    EncoderVectors,
    Key,
    Made,
    RandomSource,
    Source,
    TableVectors,
    Tokens,
)
from workflow_scripts.extraction.weighting import (
    Counts,
    Idf,
    Masks,
    Vocabulary,
    Weighting,
    Weights,
    count_documents,
    weigh,
    weight_tables,
)
from workflow_scripts.models.templates import Template
from workflow_scripts.schemas import EXTRACTION, SHAPING

Vectors = NDArray[np.float32]
Fits = Mapping[tuple[Key, str], Fit]
"""What was learnt from Wikitext for a representation and post-processing."""


class JobBlock(Slice):
    """Combinations that one job evaluates."""

    shares: list[float]
    layers: list[str]
    weightings: list[str]
    postprocessings: list[str]


class JobSettings(Slice):
    """What ``blocks.job_settings`` cuts out of the configuration."""

    source: Source
    template: Template | None
    blocks: list[JobBlock]
    weightings: dict[str, Weighting]
    postprocessings: dict[str, Postprocessing]


class Opened(NamedTuple):
    """A source ready to make vectors."""

    vectors: EncoderVectors | TableVectors
    vocabulary: Vocabulary
    wikitext: Counts | None
    """Wikitext's document frequencies, where a weighting asks for them."""
    depth: int
    """Layers of the encoder; 0 for tables."""


def plan(settings: JobSettings, depth: int) -> dict[Key, list[str]]:
    """Representations in order, each with the post-processings it gets.

    Raises:
        ConfigError: if a source is asked for what it has not.
    """
    draws = settings.source.draws if isinstance(settings.source, RandomSource) else 1
    cells: dict[Key, list[str]] = {}
    for block in settings.blocks:
        layers = every_layer(block.layers, depth)
        for share, draw, layer, weighting in product(block.shares, range(draws), layers, block.weightings):
            key = Key(share, draw, layer, weighting)
            _check(settings, key, depth)
            cells[key] = list(dict.fromkeys([*cells.get(key, []), *block.postprocessings]))
    return cells


def _check(settings: JobSettings, key: Key, depth: int) -> None:
    place = f"extraction.blocks: layers {key.layers}, weighting {key.weighting}, share {key.share:g}"
    if settings.source.kind != "encoder" and (key.layers != "static" or key.share != 0):
        raise ConfigError(
            f"{place}: a source without layers has layers static and share 0. Correct the block."
        )
    parse_layers(key.layers, depth)
    has_masks = settings.template is not None and settings.template.masks > 0
    if isinstance(settings.weightings[key.weighting], Masks) and not has_masks:
        raise ConfigError(f"{place}: the source has no mask. Leave the weighting out of its block.")


def token_weights(
    settings: Iterable[tuple[str, Weighting]],
    tokens: Tokens,
    groups_U: NDArray[np.int64],
    source: Opened,
) -> dict[str, Weights]:
    """Weights of every token under every weighting."""
    size = len(source.vocabulary.tokens)
    weights = {}
    for name, weighting in settings:
        counted: list[Counts] = []
        if isinstance(weighting, Idf) and weighting.documents != "wikitext":
            text = tokens.raw if weighting.text == "raw" else tokens.filled
            numbers = groups_U if weighting.documents == "subset" else np.zeros_like(groups_U)
            parts = [np.flatnonzero(numbers == number) for number in range(int(numbers.max(initial=0)) + 1)]
            counted = [count_documents(text.subset(rows), size) for rows in parts]
        tables_GV = weight_tables(weighting, source.vocabulary, source.wikitext, counted)
        weights[name] = weigh(tokens.filled, tables_GV, groups_U)
    return weights


def represent(
    settings: JobSettings, cells: Mapping[Key, Sequence[str]], task: Task, max_tokens: int, source: Opened
) -> Iterator[Made]:
    """Vectors of every representation of a task's texts, from one forward pass.

    Raises:
        DataError: if vectors are not finite: the encoder is broken.
    """
    tokens = source.vectors.tokens(task.texts, max_tokens)
    weights = token_weights(settings.weightings.items(), tokens, task.groups_U, source)
    for made in source.vectors.make(tokens.filled, weights, list(cells)):
        if not np.isfinite(made.vectors_UD).all():
            raise DataError(
                f"layers {made.key.layers}: vectors are not finite. Get or adapt the encoder again."
            )
        yield made


def shaped(
    settings: JobSettings, made: Made, occurrences_N: NDArray[np.int64], names: Iterable[str], fits: Fits
) -> Iterator[tuple[str, Vectors]]:
    """Each post-processing of one representation by name."""
    for name in names:
        shaping = settings.postprocessings[name]
        if shaping.fit == "wikitext":
            fitted = fits[made.key, name]
        else:
            fitted = postprocess.fit(shaping, made.vectors_UD[occurrences_N])
        yield name, postprocess.apply(shaping, fitted, made.vectors_UD)


def evaluate(
    settings: JobSettings,
    cells: Mapping[Key, Sequence[str]],
    task: Task,
    max_tokens: int,
    source: Opened,
    fits: Fits,
) -> Iterator[tuple[Key, str, Score]]:
    """Every score of every cell of one task."""
    for made in represent(settings, cells, task, max_tokens, source):
        for name, vectors_UD in shaped(settings, made, task.occurrences_N, cells[made.key], fits):
            for score in task.score(vectors_UD):
                note = "; ".join(filter(None, [score.note, made.note])) or None
                yield made.key, name, score._replace(note=note)


class Learnt(NamedTuple):
    """What Wikitext's vectors taught, and their scores."""

    fits: list[tuple[Key, str, Fit]]
    scores: list[tuple[Key, str, Score]]


def learn(
    settings: JobSettings,
    cells: Mapping[Key, Sequence[str]],
    measured: Mapping[Key, Sequence[str]],
    wikitext: Task,
    max_tokens: int,
    source: Opened,
) -> Learnt:
    """Fit every post-processing of ``cells`` to Wikitext's vectors, keep what others need, score ``measured``."""
    learnt = Learnt([], [])
    for made in represent(settings, cells, wikitext, max_tokens, source):
        for name in cells[made.key]:
            shaping = settings.postprocessings[name]
            fitted = postprocess.fit(shaping, made.vectors_UD)
            if shaping.fit == "wikitext":
                learnt.fits.append((made.key, name, fitted))
            if name in measured.get(made.key, ()):
                scores = wikitext.score(postprocess.apply(shaping, fitted, made.vectors_UD))
                learnt.scores.extend(
                    (made.key, name, score._replace(note=made.note or None)) for score in scores
                )
    return learnt


def absent(task: str) -> list[tuple[Key, str, Score]]:
    """The one row of a task or source that is not there."""
    return [(Key(0.0, 0, "", ""), "", gap(task, "no source of the dataset or of the vectors is there"))]


def uses_groups(settings: JobSettings) -> bool:
    """Whether a weighting takes the subsets of a task apart."""
    return any(isinstance(one, Idf) and one.documents == "subset" for one in settings.weightings.values())


def rows_of(source: str, kind: str, scores: Iterable[tuple[Key, str, Score]]) -> pa.Table:
    """Scores as a table with the columns of ``schemas.EXTRACTION``."""
    rows = [
        {"source": source, "kind": kind, **key._asdict(), "postprocess": name, **score._asdict()}
        for key, name, score in scores
    ]
    assert all(row["value"] is None or np.isfinite(row["value"]) for row in rows)
    return pa.Table.from_pylist(rows, schema=EXTRACTION)


def fits_table(fits: Iterable[tuple[Key, str, Fit]]) -> pa.Table:
    """What was learnt, columns of ``schemas.SHAPING``."""
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
    return pa.Table.from_pylist(rows, schema=SHAPING)


def read_fits(table: pa.Table, wanted: Mapping[Key, Sequence[str]]) -> dict[tuple[Key, str], Fit]:
    """The fits of the cells in ``wanted``."""
    fits: dict[tuple[Key, str], Fit] = {}
    names = table.select(
        ["share", "draw", "layers", "weighting", "postprocess", "part", "columns"]
    ).to_pylist()
    for number, row in enumerate(names):
        key = Key(row["share"], row["draw"], row["layers"], row["weighting"])
        if row["postprocess"] in wanted.get(key, ()):
            values = table["values"][number].values.to_numpy()
            shape = (-1, row["columns"]) if row["columns"] else (-1,)
            fits.setdefault((key, row["postprocess"]), {})[row["part"]] = values.reshape(shape)
    return fits
