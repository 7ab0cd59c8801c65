"""Short texts with classes: k-means, scored by the best one-to-one assignment of clusters to classes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from workflow_scripts.evaluation.clustering import agreements, drawn, summaries
from workflow_scripts.evaluation.scores import Score
from workflow_scripts.extraction.scoring import Task, Vectors, distinct
from workflow_scripts.settings.suites.clustering import Config


def load(task: str, table: pa.Table, suite: Mapping[str, Any], *, by_group: bool) -> Task:
    """The texts of one dataset, which has no subsets."""
    config = Config.parse(dict(suite), "suites.clustering")
    table = drawn(table, config.max_texts)
    texts, (rows_N,) = distinct(table["text1"].to_pylist())
    classes_N = np.unique(table["label"].to_pylist(), return_inverse=True)[1]

    def score(vectors_UD: Vectors) -> list[Score]:
        return summaries(task, agreements(vectors_UD[rows_N], classes_N, config), len(rows_N))

    return Task(texts, np.zeros(len(texts), np.int64), rows_N, score)
