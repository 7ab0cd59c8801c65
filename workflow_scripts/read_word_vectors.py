"""Bring static vectors of words, as X2Static writes them, into the form the pipeline reads (rule read_word_vectors)."""

from workflow_scripts.artefacts import write_table
from workflow_scripts.data.sources import data_root
from workflow_scripts.errors import one_line_errors
from workflow_scripts.extraction.sources import WordSource
from workflow_scripts.extraction.word_vectors import locate, read
from workflow_scripts.job import parse_job
from workflow_scripts.schemas import WORD_VECTORS


def main() -> None:
    """Find the file, read it, write; where it is not there, write none and say so in the labels."""
    job = parse_job("read_word_vectors", __doc__, wildcards=["source"], outputs=["vectors"])
    source = WordSource.parse(job.settings["source"], f"extraction.sources.{job.wildcards['source']}")
    path, origin = locate(source, data_root())
    if path is None:
        gap = f"gap: {job.wildcards['source']}: {source.path} is not below the data root"
        write_table(job.outputs["vectors"], WORD_VECTORS.empty_table(), job.record(labels=[gap]))
        return
    vectors = read(path, source.drop_frequent)
    write_table(job.outputs["vectors"], vectors, job.record(foreign=origin))


if __name__ == "__main__":
    with one_line_errors():
        main()
