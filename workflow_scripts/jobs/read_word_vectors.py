"""Convert static word vectors, from a text file or a package, into a table (rule read_word_vectors)."""

from workflow_scripts.columns.extraction import WORD_VECTORS
from workflow_scripts.data.planned import check_planned
from workflow_scripts.data.sources import data_root
from workflow_scripts.extraction.word_vectors import expected, locate, read
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.extraction import WordRepresentation


def main(job: Job) -> None:
    """Find the files, read them, write; if one is missing, write an empty table and label the gap."""
    name = job.wildcards["representation"]
    place = f"extraction.representations.{name}"
    representation = WordRepresentation.parse(job.settings["representation"], place)
    files, origin = locate(representation, data_root())
    check_planned(place, job.settings["source"], {given.path: given.sha256 for given in origin.values()})
    if not files:
        gap = f"gap: {name}: not there; expected {expected(representation)}"
        job.write({"vectors": WORD_VECTORS.empty_table()}, labels=[gap])
        return
    vectors = read(files, representation.drop_frequent)
    job.write({"vectors": vectors}, foreign=origin, labels=[representation.label])
