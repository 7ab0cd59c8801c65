"""Score all sentence vectors of one representation on one task, from one forward pass (rule extract_scores)."""

import importlib

from workflow_scripts.columns import FITTED
from workflow_scripts.data.tables import read_dataset_table
from workflow_scripts.evaluation.base import Evaluator
from workflow_scripts.extraction.postprocess import Fit
from workflow_scripts.extraction.representations import Key
from workflow_scripts.extraction.study import (
    absent,
    evaluate,
    open_representation,
    plan,
    read_fits,
    rows_of,
)
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.extraction import JobSettings


def extract_scores(job: Job) -> None:
    """Read the task, compute its vectors once, post-process and score them all, write."""
    kind, representation, name = (job.wildcards[wildcard] for wildcard in ("kind", "representation", "task"))
    settings = JobSettings.parse(job.settings["job"], "extraction")
    scored = "sts" if kind == "geometry" else kind
    evaluator: Evaluator = importlib.import_module(f"workflow_scripts.evaluation.{scored}")
    config = evaluator.Config.parse(job.settings["suite"], f"suites.{scored}")
    table = read_dataset_table(job.inputs["dataset"])
    opened = open_representation(settings, job) if len(table) else None
    if opened is None:
        scores = absent(name)
    else:
        cells = plan(settings, opened.depth)
        fits: dict[tuple[Key, str], Fit] = {}
        for path in job.many("fitted"):
            fits |= read_fits(read_table(path, FITTED), cells)
        task = evaluator.load(name, table, config)
        scores = list(evaluate(settings, cells, task, config.max_tokens, opened, fits))
    cut = opened.pieces if opened else str.casefold  # of no vectors, the case of nothing was seen
    job.write({"scores": rows_of(representation, kind, scores)}, labels=config.labels(cut))
