"""Classification: logistic regression on frozen vectors, following SentEval's protocols."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from workflow_scripts.evaluation import transfer
from workflow_scripts.evaluation.embeddings import Embeddings
from workflow_scripts.evaluation.scores import Score
from workflow_scripts.extraction.scoring import Task, Vectors, distinct
from workflow_scripts.settings.suites.transfer import Config


def load(task: str, table: pa.Table, suite: Mapping[str, Any], *, by_group: bool) -> Task:
    """One or both texts of every row; a task has no subsets."""
    config = Config.parse(dict(suite), "suites.transfer")
    sides = [table["text1"].to_pylist()]
    sides += [] if table["text2"].null_count else [table["text2"].to_pylist()]
    texts, rows = distinct(*sides)

    def score(vectors_UD: Vectors) -> list[Score]:
        return transfer.evaluate({task: table}, Embeddings(texts, vectors_UD).__getitem__, config)

    return Task(texts, np.zeros(len(texts), np.int64), np.concatenate(rows), score)
