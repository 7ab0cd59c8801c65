"""Count the words of one corpus (rule count_words)."""

from workflow_scripts.data.tables import read_dataset_table, texts_of
from workflow_scripts.data.words import count_words
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.corpora import Words


def main(job: Job) -> None:
    """Read, count, write."""
    words = Words.parse(job.settings["words"], "words")
    texts = texts_of(read_dataset_table(job.inputs["sentences"]))
    job.write({"counts": count_words(texts, words)})
