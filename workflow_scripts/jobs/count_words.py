"""Count the words of one corpus (rule count_words)."""

from workflow_scripts.data import words
from workflow_scripts.data.tables import read_dataset_table, texts_of
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.corpora import Words


def count_words(job: Job) -> None:
    """Read, count, write."""
    settings = Words.parse(job.settings["words"], "words")
    texts = texts_of(read_dataset_table(job.inputs["sentences"]))
    job.write({"counts": words.count_words(texts, settings)})
