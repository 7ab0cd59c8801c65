"""A suite of scored pairs as tasks, and its texts for suites that are measured beside it."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from workflow_scripts.columns.corpora import PAIRS
from workflow_scripts.columns.scores import SIMILARITIES
from workflow_scripts.evaluation import sts
from workflow_scripts.evaluation.embeddings import Encode
from workflow_scripts.evaluation.scores import gap
from workflow_scripts.evaluation.task_by_task import Task
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.settings.suites.sts import Config


def tasks_of(config: Config, datasets: Iterable[Path]) -> dict[str, Task]:
    """Tasks of a suite by name, each with its scores and the similarities of its pairs."""
    return {path.stem: _task(path, read_table(path, PAIRS), config) for path in datasets}


def _task(path: Path, table: pa.Table, config: Config) -> Task:
    return Task(path, config.of_task(path.stem), partial(_evaluate, path.stem, table, config.text))


def _evaluate(task: str, table: pa.Table, text: str, encode: Encode) -> dict[str, Any]:
    if not len(table):
        missing = gap(task, "no source of the dataset is available")
        return {"scores": [missing], "pairs": SIMILARITIES.empty_table()}
    scores, pairs = sts.evaluate({task: sts.in_text(task, table, text)}, encode)
    return {"scores": scores, "pairs": pairs}
