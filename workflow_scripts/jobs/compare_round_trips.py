"""Comparison of round trips with their sentences, by the embeddings of an encoder.

A round trip may be fluent and yet be that of another sentence, an apology, an advertisement, or half of its sentence.
Its form does not show that; its meaning does. Cleaners of parallel data compare both sides in the same way. The
comparison is a separate job for each part of a corpus, on a node without a network. Another threshold
(``data.round_trip_corpora``) therefore neither translates nor encodes anything again.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from workflow_scripts.columns import ROUND_TRIPS, TRIP_COSINES
from workflow_scripts.data.tables import table_of
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.readouts import pooling as pooling
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.corpora import TripComparison
from workflow_scripts.settings.readouts import Pooling

CHUNK = 1024
"""Size of a chunk of sentences, which are encoded together; a round trip is compared with all of its chunk."""

Vectors = NDArray[np.float32]


def compare(
    sentences: Sequence[str], backs: Sequence[str], vectors_of: Callable[[list[str]], Vectors]
) -> tuple[Vectors, Vectors]:
    """Return cosines of round trips with their sentences, and with the nearest other sentence of their chunk.

    Args:
        sentences: The sentences, S of them.
        backs: Their round trips.
        vectors_of: Function that embeds texts, shape (N, D).

    Returns:
        Two arrays of shape (S,). Sentences with the same words do not count as different; -1 if a chunk has no other
        sentence.
    """
    original, other = np.empty(len(sentences), np.float32), np.empty(len(sentences), np.float32)
    for start in range(0, len(sentences), CHUNK):
        chunk = slice(start, start + CHUNK)
        texts = [*sentences[chunk], *backs[chunk]]
        vectors = vectors_of(texts)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        count = len(texts) // 2
        cosines_BS = vectors[count:] @ vectors[:count].T
        original[chunk] = cosines_BS.diagonal()
        _, words = np.unique(
            [" ".join(text.casefold().split()) for text in texts[:count]], return_inverse=True
        )
        other[chunk] = np.where(words[:, None] == words, np.float32(-1), cosines_BS).max(axis=1)
    return original, other


def compare_round_trips(job: Job) -> None:
    """Compare one part of a corpus with its round trips (rule compare_round_trips)."""
    settings = TripComparison.parse(job.settings["similarity"], "round_trip.similarity")
    folder = job.input("encoder").parent
    readout = Pooling(kind="pooling", pooler="avg", layers=None)
    backbone, tokenizer = load_backbone(folder), load_tokenizer(folder)
    encoder = SentenceEncoder(backbone, tokenizer, readout, head=False, head_at_test=False)
    trips = job.read("trips", ROUND_TRIPS).to_pandas()
    usable = trips[trips["outcome"].isin(["paraphrase", "unchanged"])]
    original, other = compare(
        usable["sentence"].tolist(),
        usable["back"].tolist(),
        lambda texts: encoder.encode(texts, settings.max_tokens),
    )
    rows = zip(usable["row"].tolist(), original.tolist(), other.tolist(), strict=True)
    table: pa.Table = table_of(rows, TRIP_COSINES)
    job.write({"similarities": table})
