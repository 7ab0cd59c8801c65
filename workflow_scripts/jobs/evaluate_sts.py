"""Score one run on one suite of scored pairs (rule evaluate_sts)."""

from functools import partial

from workflow_scripts.columns.corpora import PAIRS
from workflow_scripts.errors import one_line_errors
from workflow_scripts.evaluation import sts
from workflow_scripts.evaluation.scores import gap, score_table
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.provenance.artefacts import read_table, write_table
from workflow_scripts.provenance.job import parse_job


def main() -> None:
    """Encode the suite's unique sentences once, correlate, write."""
    job = parse_job(
        "evaluate_sts",
        __doc__,
        wildcards=["suite", "run", "seed"],
        inputs=["model"],
        many=["datasets"],
        outputs=["scores", "pairs"],
    )
    config = sts.Config.parse(job.settings["suite"], f"suites.sts.{job.wildcards['suite']}")
    tables = {path.stem: read_table(path, PAIRS) for path in job.many("datasets")}
    encoder, tokenizer = load_encoder(job.inputs["model"].parent)
    found = {name: sts.in_text(name, table, config.text) for name, table in tables.items() if len(table)}
    scores, pairs = sts.evaluate(found, partial(encode, encoder, tokenizer, max_tokens=config.max_tokens))
    scores += [gap(name, "no source of the dataset is available") for name in tables if name not in found]
    record = job.record(labels=config.labels(tokenizer))
    write_table(job.outputs["scores"], score_table(scores, **job.wildcards), record)
    write_table(job.outputs["pairs"], pairs, record)


if __name__ == "__main__":
    with one_line_errors():
        main()
