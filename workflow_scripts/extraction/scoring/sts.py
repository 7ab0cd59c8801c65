"""Scored pairs: Spearman and Pearson correlation of cosines, over all pairs of a year ("all") and by subset."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from workflow_scripts.evaluation.correlation import cosine
from workflow_scripts.evaluation.scores import Score
from workflow_scripts.evaluation.sts import Judged, in_text
from workflow_scripts.extraction.scoring import Task, Vectors, distinct
from workflow_scripts.settings.suites.sts import Config

_SEPARATOR = "\x00"  # occurs in no text


def load(task: str, table: pa.Table, suite: Mapping[str, Any], *, by_group: bool) -> Task:
    """Both sides of every pair; with groups, a text that occurs in two subsets counts in both."""
    config = Config.parse(dict(suite), "suites.sts")
    table = in_text(task, table, config.text)
    subsets = [subset or "" for subset in table["subset"].to_pylist()] if by_group else [""] * len(table)
    sides = [table[side].to_pylist() for side in ("sentence1", "sentence2")]
    keys = [
        [f"{subset}{_SEPARATOR}{text}" for subset, text in zip(subsets, side, strict=True)] for side in sides
    ]
    unique, (left_P, right_P) = distinct(*keys)
    groups, texts = zip(*(key.split(_SEPARATOR) for key in unique), strict=True)

    judged = Judged(task, table["subset"].to_numpy(), table["score"].to_numpy())

    def score(vectors_UD: Vectors) -> list[Score]:
        return judged.scores(cosine(vectors_UD[left_P], vectors_UD[right_P]))

    groups_U = np.unique(groups, return_inverse=True)[1].astype(np.int64)
    return Task(list(texts), groups_U, np.concatenate([left_P, right_P]), score, config.labels)
