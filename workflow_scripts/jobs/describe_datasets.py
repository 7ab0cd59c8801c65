"""Describe the datasets of a study: rows, classes, vocabulary, lengths (rule describe_datasets)."""

from collections.abc import Iterable
from typing import Any

from workflow_scripts.data.printed import as_printed
from workflow_scripts.data.tables import read_dataset_table
from workflow_scripts.models.encoder import load_tokenizer
from workflow_scripts.provenance.job import Job
from workflow_scripts.reporting.dataset_statistics import build
from workflow_scripts.reporting.records import record_of
from workflow_scripts.settings.extraction import Statistics


def main(job: Job) -> None:
    """Read the datasets and the encoder's tokeniser, count, write."""
    name = job.wildcards["statistics"]
    table = Statistics.parse(job.settings["table"], f"extraction.statistics.{name}")
    tokenizer = load_tokenizer(job.inputs["encoder"].parent)

    names: Any = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))

    def pieces(texts: list[str]) -> Iterable[list[str]]:
        encoded = tokenizer(texts, add_special_tokens=False, verbose=False)
        return ([names[number] for number in ids] for ids in encoded["input_ids"])

    datasets = {path.stem: read_dataset_table(path) for path in job.many("datasets")}
    printed = {
        key: number
        for path in job.many("published")
        for key, number in as_printed(path.read_bytes(), str(path)).items()
    }
    labels = record_of(job.inputs["encoder"]).labels
    job.write({"cells": build(table, datasets, pieces, labels, printed)})
