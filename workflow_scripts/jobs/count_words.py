"""Count the words of one corpus (rule count_words)."""

from workflow_scripts.data.tables import read_dataset_table, texts_of
from workflow_scripts.data.words import count_words
from workflow_scripts.errors import one_line_errors
from workflow_scripts.provenance.artefacts import write_table
from workflow_scripts.provenance.job import parse_job
from workflow_scripts.settings.words import Words


def main() -> None:
    """Read, count, write."""
    job = parse_job("count_words", __doc__, wildcards=["corpus"], inputs=["sentences"], outputs=["counts"])
    words = Words.parse(job.settings["words"], "words")
    texts = texts_of(read_dataset_table(job.inputs["sentences"]))
    write_table(job.outputs["counts"], count_words(texts, words), job.record())


if __name__ == "__main__":
    with one_line_errors():
        main()
