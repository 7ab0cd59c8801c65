"""Convert static word vectors from X2Static's text format into a table (rule read_word_vectors)."""

from workflow_scripts.columns.extraction import WORD_VECTORS
from workflow_scripts.data.planned import check_planned
from workflow_scripts.data.sources import data_root
from workflow_scripts.errors import one_line_errors
from workflow_scripts.extraction.representations import WordRepresentation
from workflow_scripts.extraction.word_vectors import locate, read
from workflow_scripts.provenance.artefacts import write_table
from workflow_scripts.provenance.job import parse_job


def main() -> None:
    """Find the file, read it, write; if it is missing, write an empty table and label the gap."""
    job = parse_job("read_word_vectors", __doc__, wildcards=["representation"], outputs=["vectors"])
    representation = WordRepresentation.parse(
        job.settings["representation"], f"extraction.representations.{job.wildcards['representation']}"
    )
    path, origin = locate(representation, data_root())
    planned, hashes = job.settings["source"], {given.path: given.sha256 for given in origin.values()}
    check_planned(f"extraction.representations.{job.wildcards['representation']}", planned, hashes)
    if path is None:
        expected = f"local:{representation.path} (sha256 {representation.sha256 or 'not pinned'})"
        gap = f"gap: {job.wildcards['representation']}: not there; expected {expected}"
        write_table(job.outputs["vectors"], WORD_VECTORS.empty_table(), job.record(labels=[gap]))
        return
    vectors = read(path, representation.drop_frequent)
    write_table(job.outputs["vectors"], vectors, job.record(foreign=origin))


if __name__ == "__main__":
    with one_line_errors():
        main()
