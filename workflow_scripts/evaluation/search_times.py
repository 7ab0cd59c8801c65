"""Time of a query of semantic search, which differs from run to run; what a search finds is ``evaluation.search``'s.

Shape suffixes: Q queries, N corpus texts, D width.
"""

import time

from workflow_scripts.arrays import Vectors
from workflow_scripts.columns import LABELLED
from workflow_scripts.evaluation.base import Score, score_table
from workflow_scripts.evaluation.search import HITS, index_of, load, nearest
from workflow_scripts.models.devices import granted_device
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.folders import load_encoder
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.suites import InvertedIndex, Search


def query_time(task: str, queries_QD: Vectors, corpus_ND: Vectors, inverted: InvertedIndex | None) -> Score:
    """``retrieval_ms`` of a query, the mean over one batch of all queries; it differs from run to run."""
    index = index_of(corpus_ND, inverted)
    nearest(queries_QD[:HITS], index, HITS + 1)  # warm-up: the first search of a process also loads code
    start = time.perf_counter()
    nearest(queries_QD, index, HITS + 1)
    milliseconds = 1000 * (time.perf_counter() - start)
    return Score(task, "", "retrieval_ms", milliseconds / len(queries_QD), len(queries_QD), "cpu, 1 thread")


def evaluate_search(job: Job) -> None:
    """Time the queries of one run on one suite of search (rule evaluate_search)."""
    config = Search.parse(job.settings["suite"], f"suites.search.{job.wildcards['suite']}")
    encoder, tokenizer = load_encoder(job.inputs["model"].parent, config.readout)
    encoder.to(granted_device(job.operational["gpu"]))
    times: list[Score] = []
    for path in job.many("datasets"):
        task = load(path.stem, read_table(path, LABELLED), config)
        sides = [encode(encoder, tokenizer, texts, max_tokens=config.max_tokens) for texts in task.columns]
        if sides:
            queries_QD, corpus_ND = sides
            times.append(query_time(path.stem, queries_QD, corpus_ND, config.index))
        else:
            times += task.score()
    job.write({"table": score_table(times, **job.wildcards)})
