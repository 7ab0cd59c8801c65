"""Corpora of round trips.

Paraphrases are positives. ``unchanged`` rows are kept or dropped as configured for the corpus, since a rule-based
engine leaves one sentence in thirty unchanged. All other rows are dropped and counted, as are rows with a translation
that several different sentences got.
"""

from collections import Counter

import pandas as pd
import pyarrow as pa

from workflow_scripts.apis.answer_checks import repeated
from workflow_scripts.columns import DROPPED, ROUND_TRIPS, SENTENCES, TRIPLES
from workflow_scripts.data.tables import table_of
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.corpora import Shape


def to_train_on(trips: pa.Table, base: pa.Table, shape: Shape) -> tuple[pa.Table, Counter[str]]:
    """Select the rows for training, in the requested form.

    Args:
        trips: Columns of ``columns.ROUND_TRIPS``.
        base: The corpus that was translated, columns of ``columns.SENTENCES``.
        shape: The form, and the treatment of unchanged rows.

    Returns:
        Triples without negatives, or sentences at the positions of the base sentences (``columns``); and the
        number of dropped rows by outcome. Of equal sentences, the first is kept.
    """
    rows = trips.to_pandas()
    wanted = ["paraphrase", "unchanged"] if shape.unchanged == "keep" else ["paraphrase"]
    usable = rows[rows["outcome"].isin(wanted)]
    dropped = Counter(rows["outcome"].drop(usable.index))
    forth, back = (repeated(zip(usable["sentence"], usable[leg], strict=True)) for leg in ("pivot", "back"))
    own = usable[~usable["pivot"].isin(forth) & ~usable["back"].isin(back)]
    dropped["rejected: given to several different sentences"] += len(usable) - len(own)
    if shape.form == "pairs":
        negatives = pa.nulls(len(own), pa.string())
        return pa.table([own["sentence"], own["back"], negatives], schema=TRIPLES), +dropped
    texts = pd.concat([rows["sentence"], own["back"]]) if shape.form == "expanded" else own["back"]
    distinct = texts.drop_duplicates()
    dropped["repeated"] += len(texts) - len(distinct)
    origins = base.take(pa.array(rows["row"][distinct.index]))
    return pa.table([distinct, origins["document"], origins["position"]], schema=SENTENCES), +dropped


def gather_round_trips(job: Job) -> None:
    """Join the parts of a translated corpus and keep what may be trained on (rule gather_round_trips)."""
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
