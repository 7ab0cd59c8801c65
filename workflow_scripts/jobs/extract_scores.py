"""Score all sentence vectors of one representation on one task, from one forward pass (rule extract_scores)."""

from workflow_scripts.columns.extraction import FITTED
from workflow_scripts.data.tables import read_dataset_table
from workflow_scripts.errors import one_line_errors
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
from workflow_scripts.provenance.job import parse_job


def main() -> None:
    """Read the task, compute its vectors once, post-process and score them all, write."""
    job = parse_job(
        "extract_scores",
        __doc__,
        wildcards=["kind", "representation", "task"],
        inputs=["encoder", "biases", "dataset"],
        many=["words", "documents", "averages", "fitted"],
        operational=["gpus"],
        outputs=["scores"],
    )
    kind, representation, name = (job.wildcards[wildcard] for wildcard in ("kind", "representation", "task"))
    settings = JobSettings.parse(job.settings["job"], "extraction")
    suite = job.settings["suite"]
    table = read_dataset_table(job.inputs["dataset"])
    gpus = job.operational["gpus"]
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


if __name__ == "__main__":
    with one_line_errors():
        main()
