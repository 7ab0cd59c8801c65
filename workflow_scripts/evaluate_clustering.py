"""Score one run on one suite of texts to cluster (rule evaluate_clustering)."""

from functools import partial

from workflow_scripts.artefacts import read_table, write_table
from workflow_scripts.errors import one_line_errors
from workflow_scripts.evaluation import clustering
from workflow_scripts.evaluation.scores import score_table
from workflow_scripts.job import parse_job
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.schemas import LABELLED


def main() -> None:
    """Encode the suite's unique texts once, cluster, compare with the classes, write."""
    job = parse_job(
        "evaluate_clustering",
        __doc__,
        wildcards=["suite", "run", "seed"],
        inputs=["model"],
        many=["datasets"],
        outputs=["scores"],
    )
    config = clustering.Config.parse(job.settings["suite"], f"suites.clustering.{job.wildcards['suite']}")
    tables = {path.stem: read_table(path, LABELLED) for path in job.many("datasets")}
    encoder, tokenizer = load_encoder(job.inputs["model"].parent)
    scores = clustering.evaluate(
        tables, partial(encode, encoder, tokenizer, max_tokens=config.max_tokens), config
    )
    write_table(
        job.outputs["scores"],
        score_table(scores, **job.wildcards),
        job.record(modules=encoder.modules_by_name, labels=[config.label] if config.label else []),
    )


if __name__ == "__main__":
    with one_line_errors():
        main()
