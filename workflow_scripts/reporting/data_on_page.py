"""What a page says of data: datasets, corpora, overlap, pools of exemplars, development sets."""

import os
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from workflow_scripts.columns.corpora import CONTAMINATION, DROPPED, EXEMPLARS, PAIRS, WORD_COUNTS
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.reporting.records import record_of, wildcard

Line = dict[str, Any]
"""What the template prints of one thing, by the names that it uses."""


class File(NamedTuple):
    """An artefact that a reader may want to open: its path, and the page's link to it."""

    path: str
    link: str


def linked(path: Path, page: Path) -> File:
    """An artefact and its link relative to the folder of ``page``."""
    return File(path.as_posix(), quote(os.path.relpath(path, page.parent)))


def rows_of(path: Path) -> int:
    """Rows of a table, without reading it."""
    return int(pq.read_metadata(path).num_rows)


def datasets(job: Job) -> list[Line]:
    """Rows kept, rows dropped by reason, and the labels of each dataset's source."""
    dropped = _by(job, "dropped", "dataset")
    return [
        {
            "name": name,
            "rows": rows_of(path),
            "dropped": _counts(dropped[name]),
            "labels": record_of(path).labels,
            "file": linked(path, job.outputs["report"]),
        }
        for name, path in _by(job, "datasets", "dataset").items()
    ]


def corpora(job: Job, top_words: int) -> list[Line]:
    """Size, most frequent words, lost round trips and overlap with evaluation sets of each corpus."""
    page = job.outputs["report"]
    words, overlaps, lost = (_by(job, role, "corpus") for role in ("words", "contamination", "lost"))
    return [
        {
            "name": name,
            "sentences": rows_of(path),
            "words": read_table(words[name], WORD_COUNTS).slice(0, top_words).to_pylist(),
            "lost": _counts(lost[name]) if name in lost else [],
            "overlap": _overlap(overlaps[name]) if name in overlaps else [],
            "overlap_file": linked(overlaps[name], page) if name in overlaps else None,
            "file": linked(path, page),
        }
        for name, path in _by(job, "train", "corpus").items()
    ]


def _by(job: Job, role: str, name: str) -> dict[str, Path]:
    """The files of a role by a wildcard of the jobs that made them."""
    return {wildcard(path, name): path for path in job.many(role)}


def _counts(dropped: Path) -> list[tuple[str, int]]:
    return [(row["reason"], row["count"]) for row in read_table(dropped, DROPPED).to_pylist()]


def _overlap(path: Path) -> list[Line]:
    """A line for each evaluation set: its texts, and how many of them occur in the corpus in each sense."""
    by_task: dict[str, Line] = {}
    for row in read_table(path, CONTAMINATION).to_pylist():
        by_task.setdefault(row["task"], {"task": row["task"]})[row["match"]] = row
    return list(by_task.values())


def pools(job: Job) -> list[Line]:
    """Size, sources and share of listed words of each pool of exemplars."""
    return [_pool(path, read_table(path, EXEMPLARS), job.outputs["report"]) for path in job.many("exemplars")]


def _pool(path: Path, pool: pa.Table, page: Path) -> Line:
    return {
        "name": wildcard(path, "pool"),
        "sentences": len(pool),
        "listed_share": pc.sum(pool["listed_words"]).as_py() / pc.sum(pool["words"]).as_py(),
        "sources": sorted(set(pool["source"].to_pylist())),
        "file": linked(path, page),
    }


def development(job: Job) -> list[Line]:
    """The number of pairs in each subset of each development set."""
    return [
        {
            "name": found["dataset"] if "dataset" in found else f"of corpus {found['corpus']}",
            "subsets": Counter(read_table(path, PAIRS, ["subset"])["subset"].to_pylist()),
            "file": linked(path, job.outputs["report"]),
        }
        for path in job.many("development")
        for found in [record_of(path).wildcards]
    ]
