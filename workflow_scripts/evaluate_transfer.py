"""Score one run on one suite of transfer tasks (rule evaluate_transfer)."""

from functools import partial

from workflow_scripts.artefacts import read_table, write_table
from workflow_scripts.errors import one_line_errors
from workflow_scripts.evaluation import transfer
from workflow_scripts.evaluation.embeddings import remembering
from workflow_scripts.evaluation.scores import gap, score_table
from workflow_scripts.job import parse_job
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.schemas import LABELLED


def main() -> None:
    """Encode each sentence of the suite once, train and test the classifiers, write."""
    job = parse_job(
        "evaluate_transfer",
        __doc__,
        wildcards=["suite", "run", "seed"],
        inputs=["model"],
        many=["datasets"],
        outputs=["scores"],
    )
    config = transfer.Config.parse(job.settings["suite"], f"suites.transfer.{job.wildcards['suite']}")
    tables = {path.stem: read_table(path, LABELLED) for path in job.many("datasets")}
    found = {name: table for name, table in tables.items() if len(table)}
    encoder, tokenizer = load_encoder(job.inputs["model"].parent)
    once = remembering(partial(encode, encoder, tokenizer, max_tokens=config.max_tokens))
    scores = transfer.evaluate(config, found, once)
    scores += [gap(name, "no source of the dataset is there") for name in tables if name not in found]
    write_table(
        job.outputs["scores"],
        score_table(scores, **job.wildcards),
        job.record(modules=encoder.modules_by_name),
    )


if __name__ == "__main__":
    with one_line_errors():
        main()
