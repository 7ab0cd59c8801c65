"""Count the words of one corpus (rule count_words)."""

from workflow_scripts.artefacts import read_table, write_table
from workflow_scripts.data.words import count_words
from workflow_scripts.errors import one_line_errors
from workflow_scripts.job import parse_job
from workflow_scripts.schemas import SENTENCES


def main() -> None:
    """Read, count, write."""
    job = parse_job("count_words", __doc__, wildcards=["corpus"], inputs=["sentences"], outputs=["counts"])
    sentences = read_table(job.inputs["sentences"], SENTENCES)["sentence"]
    words = (sentence for batch in sentences.chunks for sentence in batch.to_pylist())
    write_table(job.outputs["counts"], count_words(words), job.record())


if __name__ == "__main__":
    with one_line_errors():
        main()
