"""Scores in long form, as returned by every evaluator."""

from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from workflow_scripts.columns.scores import SCORES


class Score(NamedTuple):
    """One number about one encoder."""

    task: str
    aggregation: str
    metric: str
    value: float | None
    n: int
    note: str | None = None


def gap(task: str, reason: str) -> Score:
    """A task that could not be evaluated; tables print the reason instead of a number."""
    return Score(task, aggregation="", metric="", value=None, n=0, note=reason)


def score_table(scores: Iterable[Score], *, run: str, seed: str, suite: str) -> pa.Table:
    """The scores of one run as a table with the columns of ``SCORES``.

    Raises:
        AssertionError: if a value is not finite; evaluators define the score of degenerate input.
    """
    rows = [{"run": run, "seed": int(seed), "suite": suite, **score._asdict()} for score in scores]
    table = pa.Table.from_pylist(rows, schema=SCORES)
    assert pc.all(pc.is_finite(table["value"])).as_py() is not False, f"{run} {suite}: a score is not finite"
    return table
