"""Join the parts of a translated corpus and keep what may be trained on (rule gather_round_trips)."""

import pyarrow as pa

from workflow_scripts.columns import DROPPED, ROUND_TRIPS, SENTENCES
from workflow_scripts.data.round_trips import to_train_on
from workflow_scripts.data.tables import table_of
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.corpora import Shape


def gather_round_trips(job: Job) -> None:
    """Read all parts, check that no row is missing or out of place, write the corpus and what was dropped."""
    name = job.wildcards["corpus"]
    shape = Shape.parse(job.settings["shape"], f"corpora.{name}.round_trip")
    base = job.read("sentences", SENTENCES)
    parts = [read_table(path, ROUND_TRIPS) for path in job.many("trips")]
    trips = pa.concat_tables(parts).sort_by("row")
    asked = base.slice(0, job.settings["max_sentences"])
    if trips["row"].to_pylist() != list(range(len(asked))) or not trips["sentence"].equals(asked["sentence"]):
        found = f"{len(trips)} rows; the corpus has {len(asked)}, or others"
        raise DataError(f"{job.many('trips')[0].parent}: {found}. Delete the folder and run again.")
    train, dropped = to_train_on(trips, base, shape)
    if not len(train):
        raise DataError(
            f"corpora.{name}: no round trip may be trained on ({dict(dropped)}). Look at its parts."
        )
    counts = table_of(sorted(dropped.items()), DROPPED)
    job.write({"train": train, "dropped": counts}, labels=[job.settings["label"]])
