"""Alignment of pairs with the same meaning and uniformity of all sentences; the suite says whether to normalise."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from workflow_scripts.evaluation import geometry
from workflow_scripts.evaluation.embeddings import Embeddings
from workflow_scripts.evaluation.scores import Score
from workflow_scripts.extraction.scoring import Task, Vectors, distinct
from workflow_scripts.settings.suites.geometry import Config, Positives


def load(task: str, table: pa.Table, suite: Mapping[str, Any], *, by_group: bool) -> Task:
    """Both sides of the pairs of the measurement ``task``."""
    measure = Positives.parse(dict(suite["positives"][task]), f"suites.geometry.positives.{task}")
    config = Config(positives={task: measure}, samples={}, max_tokens=suite["max_tokens"])
    texts, rows = distinct(*(table[side].to_pylist() for side in ("sentence1", "sentence2")))

    def score(vectors_UD: Vectors) -> list[Score]:
        look_up = Embeddings(texts, vectors_UD).__getitem__
        return geometry.evaluate({measure.dataset: table}, look_up, config)

    return Task(texts, np.zeros(len(texts), np.int64), np.concatenate(rows), score)
