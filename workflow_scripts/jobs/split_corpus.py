"""Split one corpus into training text and pairs for choosing checkpoints (rule split_corpus)."""

from workflow_scripts.data.corpora import adjacency_pairs, split, with_sentences_of
from workflow_scripts.data.tables import read_dataset_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.corpora import Corpus

DEV_SEED = 0  # the development set is the same for every run


def main(job: Job) -> None:
    """Read, split, write."""
    corpus = Corpus.parse(job.settings["corpus"], f"corpora.{job.wildcards['corpus']}")
    parts = split(read_dataset_table(job.inputs["sentences"]), corpus)
    train = parts.train
    for path in job.many("also"):
        train = with_sentences_of(train, read_dataset_table(path))
    job.write({"train": train, "dev": adjacency_pairs(parts.held_out, DEV_SEED)}, labels=corpus.labels)
