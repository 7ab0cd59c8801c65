"""Jobs of evaluation on a tiny encoder: their tables, how they are called, and the scores that they write."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.support.training_jobs import NOWHERE, begin_here, call_of
from workflow_scripts.columns import SCORES
from workflow_scripts.provenance.artefacts import job_record, read_table, write_table
from workflow_scripts.provenance.cache import Cache
from workflow_scripts.provenance.record import Record

WILDCARDS = {"suite": "demo", "run": "frozen_avg.tiny", "seed": "0"}


def made(path: Path) -> Record:
    """The record of a file that some job made."""
    return job_record("build_frozen", settings={}, inputs={}, outputs=[path])


def dataset(folder: Path, name: str, schema: pa.Schema, rows: Iterable[dict[str, Any]] = ()) -> Path:
    """A table of the dataset ``name``, of a missing one where there are no rows."""
    path = folder / f"{name}.parquet"
    write_table(path, pa.Table.from_pylist(list(rows), schema=schema), made(path))
    return path


def run(
    rule: str,
    settings: Any,
    wildcards: Mapping[str, str] = WILDCARDS,
    cache: Cache | None = None,
    **files: Any,
) -> None:
    """Run a job in this process, called as its rule calls it."""
    place = NOWHERE | {"cache": str(cache.folder) if cache else None}
    asked = {"gpu": 0} if {"datasets", "tasks"} & {*files} and rule.startswith(("evaluate_", "time_")) else {}
    begin_here(rule, call_of(rule, settings, workplace=place, **asked, **wildcards, **files))


def scores_in(path: Path) -> list[dict[str, Any]]:
    """The rows of a table of scores, all of the same run."""
    rows: list[dict[str, Any]] = read_table(path, SCORES).to_pylist()
    assert {(row["suite"], row["run"], row["seed"]) for row in rows} == {("demo", "frozen_avg.tiny", 0)}
    return rows


def gaps_of(rows: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Tasks without a value, and why they have none."""
    return {row["task"]: row["note"] for row in rows if row["value"] is None}


def sts_metadata(name, path="a/b", kind=None, **more):
    """mteb's metadata for a task of local pairs, of another kind or with other entries if they are given."""
    from mteb.abstasks.task_metadata import TaskMetadata

    usual = {
        "dataset": {"path": path, "revision": "first"}, "description": "Pairs.", "type": "STS", "category": "t2t",
        "modalities": ["text"], "eval_splits": ["test"], "eval_langs": ["eng-Latn"], "main_score": "cosine_spearman",
    }  # fmt: skip
    return (kind or TaskMetadata)(name=name, **usual | more)
