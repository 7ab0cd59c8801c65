"""Score one run on one suite of semantic search (rule evaluate_search)."""

from functools import partial

from workflow_scripts.columns.corpora import LABELLED
from workflow_scripts.errors import one_line_errors
from workflow_scripts.evaluation import search
from workflow_scripts.evaluation.scores import score_table
from workflow_scripts.evaluation.times import write_times
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.provenance.artefacts import read_table, write_table
from workflow_scripts.provenance.job import parse_job


def main() -> None:
    """Encode the suite's unique questions once, search, write scores and times separately."""
    job = parse_job(
        "evaluate_search",
        __doc__,
        wildcards=["suite", "run", "seed"],
        inputs=["model"],
        many=["datasets"],
        outputs=["scores"],
        timings=["times"],
    )
    config = search.Config.parse(job.settings["suite"], f"suites.search.{job.wildcards['suite']}")
    tables = {path.stem: read_table(path, LABELLED) for path in job.many("datasets")}
    encoder, tokenizer = load_encoder(job.inputs["model"].parent, config.readout)
    scores, times = search.evaluate(
        tables, partial(encode, encoder, tokenizer, max_tokens=config.max_tokens), config
    )
    record = job.record()
    write_table(job.outputs["scores"], score_table(scores, **job.wildcards), record)
    write_times(job.timings["times"], score_table(times, **job.wildcards), record)


if __name__ == "__main__":
    with one_line_errors():
        main()
