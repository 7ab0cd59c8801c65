"""Time the queries of one run on one suite of search (rule evaluate_search)."""

from workflow_scripts.columns import LABELLED
from workflow_scripts.evaluation import search
from workflow_scripts.evaluation.base import Score, score_table
from workflow_scripts.models.devices import granted_device
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.folders import load_encoder
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.provenance.job import Job


def evaluate_search(job: Job) -> None:
    """Encode queries and texts, search, write the times."""
    config = search.Config.parse(job.settings["suite"], f"suites.search.{job.wildcards['suite']}")
    encoder, tokenizer = load_encoder(job.inputs["model"].parent, config.readout)
    encoder.to(granted_device(job.operational["gpu"]))
    times: list[Score] = []
    for path in job.many("datasets"):
        task = search.load(path.stem, read_table(path, LABELLED), config)
        sides = [encode(encoder, tokenizer, texts, max_tokens=config.max_tokens) for texts in task.columns]
        if sides:
            queries_QD, corpus_ND = sides
            times.append(search.query_time(path.stem, queries_QD, corpus_ND, config.index))
        else:
            times += task.score()
    job.write({"table": score_table(times, **job.wildcards)})
