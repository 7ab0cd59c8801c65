"""Score one run on one suite of scored pairs (rule evaluate_sts)."""

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from workflow_scripts.columns.corpora import PAIRS
from workflow_scripts.columns.scores import SCORES, SIMILARITIES
from workflow_scripts.errors import one_line_errors
from workflow_scripts.evaluation import sts
from workflow_scripts.evaluation.embeddings import Encode
from workflow_scripts.evaluation.scores import gap
from workflow_scripts.evaluation.task_by_task import Task, evaluate_tasks
from workflow_scripts.models.devices import granted_device
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.provenance.artefacts import read_table, write_table
from workflow_scripts.provenance.job import parse_job


def main() -> None:
    """Encode the suite's unique sentences once, correlate task by task, write."""
    job = parse_job(
        "evaluate_sts",
        __doc__,
        wildcards=["suite", "run", "seed"],
        inputs=["model"],
        many=["datasets"],
        operational=["gpus"],
        outputs=["scores", "pairs"],
    )
    config = sts.Config.parse(job.settings["suite"], f"suites.sts.{job.wildcards['suite']}")
    tasks = {path.stem: _task(path, read_table(path, PAIRS), config) for path in job.many("datasets")}
    encoder, tokenizer = load_encoder(job.inputs["model"].parent)
    encoder.to(granted_device(job.operational["gpus"]))
    once = partial(encode, encoder, tokenizer, max_tokens=config.max_tokens)
    made = evaluate_tasks(job, tasks, once, {"scores": SCORES, "pairs": SIMILARITIES})
    record = job.record(labels=[*config.labels(tokenizer), *made.labels])
    write_table(job.outputs["scores"], made.tables["scores"], record)
    write_table(job.outputs["pairs"], made.tables["pairs"], record)


def _task(path: Path, table: pa.Table, config: sts.Config) -> Task:
    def evaluate(encode: Encode) -> dict[str, Any]:
        if not len(table):
            missing = gap(path.stem, "no source of the dataset is available")
            return {"scores": [missing], "pairs": SIMILARITIES.empty_table()}
        scores, pairs = sts.evaluate({path.stem: sts.in_text(path.stem, table, config.text)}, encode)
        return {"scores": scores, "pairs": pairs}

    return Task(path, config.of_task(path.stem), evaluate)


if __name__ == "__main__":
    with one_line_errors():
        main()
