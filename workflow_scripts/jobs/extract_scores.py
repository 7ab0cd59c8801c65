"""Score all sentence vectors of one representation on one task, from one forward pass (rule extract_scores)."""

from workflow_scripts.columns.extraction import FITTED
from workflow_scripts.data.tables import read_dataset_table
from workflow_scripts.extraction.opening import Files, open_representation
from workflow_scripts.extraction.postprocess import Fit
from workflow_scripts.extraction.representations import Key
from workflow_scripts.extraction.scoring import load_scoring
from workflow_scripts.extraction.study import (
    JobSettings,
    absent,
    evaluate,
    plan,
    read_fits,
    rows_of,
    uses_groups,
)
from workflow_scripts.provenance.artefacts import read_table, write_table
from workflow_scripts.provenance.job import Job


def main(job: Job) -> None:
    """Read the task, compute its vectors once, post-process and score them all, write."""
    kind, representation, name = (job.wildcards[wildcard] for wildcard in ("kind", "representation", "task"))
    settings = JobSettings.parse(job.settings["job"], "extraction")
    suite = job.settings["suite"]
    table = read_dataset_table(job.inputs["dataset"])
    gpus = job.operational["gpu"]
    labels = [suite["label"]] if suite.get("label") else []
    opened = open_representation(settings, Files.of(job), gpus) if len(table) else None
    if opened is None:
        scores = absent(name)
    else:
        cells = plan(settings, opened.depth)
        fits: dict[tuple[Key, str], Fit] = {}
        for path in job.many("fitted"):
            fits |= read_fits(read_table(path, FITTED), cells)
        task = load_scoring(kind).load(name, table, suite, by_group=uses_groups(settings))
        scores = list(evaluate(settings, cells, task, suite["max_tokens"], opened, fits))
        labels += task.labels(opened.pieces)
    record = job.record(labels=labels)
    write_table(job.outputs["scores"], rows_of(representation, kind, scores), record)
