"""Measure the geometry of one run's embedding space (rule evaluate_geometry)."""

from functools import partial

from workflow_scripts.data.tables import read_dataset_table
from workflow_scripts.errors import one_line_errors
from workflow_scripts.evaluation import geometry
from workflow_scripts.evaluation.embeddings import remembering
from workflow_scripts.evaluation.scores import score_table
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.provenance.artefacts import write_table
from workflow_scripts.provenance.job import parse_job


def main() -> None:
    """Encode the suite's unique sentences once, measure, write."""
    job = parse_job(
        "evaluate_geometry",
        __doc__,
        wildcards=["suite", "run", "seed"],
        inputs=["model"],
        many=["datasets"],
        outputs=["scores"],
    )
    config = geometry.Config.parse(job.settings["suite"], f"suites.geometry.{job.wildcards['suite']}")
    tables = {path.stem: read_dataset_table(path) for path in job.many("datasets")}
    found = {name: table for name, table in tables.items() if len(table)}
    encoder, tokenizer = load_encoder(job.inputs["model"].parent)
    once = remembering(partial(encode, encoder, tokenizer, max_tokens=config.max_tokens))
    scores = geometry.evaluate(found, once, config)
    write_table(
        job.outputs["scores"],
        score_table(scores, **job.wildcards),
        job.record(),
    )


if __name__ == "__main__":
    with one_line_errors():
        main()
