"""Score one run on one suite by the evaluator of its kind (rule evaluate_suite)."""

import importlib
from functools import partial

from workflow_scripts.columns.corpora import FORMS
from workflow_scripts.errors import one_line_errors
from workflow_scripts.evaluation.base import Evaluator
from workflow_scripts.evaluation.embeddings import remembering
from workflow_scripts.evaluation.scores import gap, score_table
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.provenance.artefacts import read_table, write_table
from workflow_scripts.provenance.job import parse_job


def main() -> None:
    """Encode each text of the suite once, evaluate, write."""
    job = parse_job(
        "evaluate_suite",
        __doc__,
        wildcards=["kind", "suite", "run", "seed"],
        inputs=["model"],
        many=["datasets"],
        outputs=["scores"],
    )
    wildcards = dict(job.wildcards)
    kind = wildcards.pop("kind")
    evaluator: Evaluator = importlib.import_module(f"workflow_scripts.evaluation.{kind}")
    config = evaluator.Config.parse(job.settings["suite"], f"suites ({wildcards['suite']})")
    tables = {path.stem: read_table(path, FORMS[evaluator.FORM]) for path in job.many("datasets")}
    found = {name: table for name, table in tables.items() if len(table)}
    encoder, tokenizer = load_encoder(job.inputs["model"].parent)
    once = remembering(partial(encode, encoder, tokenizer, max_tokens=config.max_tokens))
    scores = evaluator.evaluate(found, once, config) if found else []
    scores += [gap(name, "no source of the dataset is available") for name in tables if name not in found]
    record = job.record(labels=config.labels)
    write_table(job.outputs["scores"], score_table(scores, **wildcards), record)


if __name__ == "__main__":
    with one_line_errors():
        main()
