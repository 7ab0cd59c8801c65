"""Corpora of round trips.

Paraphrases are positives. ``unchanged`` rows are kept or dropped as configured, since a rule-based engine leaves one
sentence in thirty unchanged. All other rows are dropped and counted. So are rows whose translation several different
sentences share, and rows whose round trip is unlike its sentence or nearer to another one
(``jobs.compare_round_trips``). If these exceed ``rejected_share``, the translator is at fault, and the job stops.
"""

from collections import Counter

import pandas as pd
import pyarrow as pa

from workflow_scripts.apis.answer_checks import repeated
from workflow_scripts.columns import DROPPED, ROUND_TRIPS, SENTENCES, TRIP_COSINES, TRIPLES
from workflow_scripts.data.tables import table_of
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.corpora import Shape, Thresholds

UNLIKE, ASTRAY = "rejected: unlike its sentence", "rejected: nearer to another sentence"
"""Outcomes of round trips that the comparison rejects."""


def judge(trips: pd.DataFrame, similarities: pa.Table | None, settings: Thresholds | None) -> pd.Series:
    """Return the outcomes of round trips after the comparison with their sentences, or unchanged without one.

    Args:
        trips: Columns of ``columns.ROUND_TRIPS``.
        similarities: Columns of ``columns.TRIP_COSINES``, a row for each round trip that can be used for training.
        settings: The thresholds.

    Raises:
        DataError: if more round trips are rejected than ``rejected_share``; the message shows the one least like its
            sentence.
    """
    outcomes = trips["outcome"].copy()
    if similarities is None or settings is None:
        return outcomes
    compared = similarities.to_pandas().set_index("row")
    unlike = compared.index[compared["own"] < settings.minimum]
    astray = compared.index[compared["other"] > compared["own"]]
    outcomes[trips["row"].isin(astray)] = ASTRAY
    outcomes[trips["row"].isin(unlike)] = UNLIKE
    rejected = unlike.union(astray)
    if len(rejected) > settings.rejected_share * len(compared):
        worst = trips.set_index("row").loc[compared["own"].idxmin()]
        problem = (
            f"{len(rejected)} of {len(compared)} round trips are unlike their sentences, or nearer to others"
        )
        shown = f"{worst['sentence']!r} came back as {worst['back']!r}, through {worst['pivot']!r}"
        raise DataError(
            f"{problem}, more than rejected_share {settings.rejected_share:g}: {shown}. Correct the "
            "translator, and remove its answers from the ledger (docs/provenance.md), or increase "
            "rejected_share."
        )
    return outcomes


def to_train_on(
    trips: pa.Table,
    base: pa.Table,
    shape: Shape,
    similarities: pa.Table | None,
    thresholds: Thresholds | None,
) -> tuple[pa.Table, Counter[str]]:
    """Return the rows for training, in the configured form.

    Args:
        trips: Columns of ``columns.ROUND_TRIPS``.
        base: The corpus that was translated, columns of ``columns.SENTENCES``.
        shape: The form, and the treatment of unchanged rows.
        similarities: Comparison of the round trips with their sentences, columns of ``columns.TRIP_COSINES``; None if
            they were not compared.
        thresholds: Thresholds of rejection.

    Returns:
        Triples without negatives, or sentences at the positions of the base sentences (``columns``); and the
        number of dropped rows by outcome. Of equal sentences, the first is kept.

    Raises:
        DataError: if too many round trips are unlike their sentences.
    """
    rows = trips.to_pandas()
    rows["outcome"] = judge(rows, similarities, thresholds)
    wanted = ["paraphrase", "unchanged"] if shape.unchanged == "keep" else ["paraphrase"]
    usable = rows[rows["outcome"].isin(wanted)]
    dropped = Counter(rows["outcome"].drop(usable.index))
    forth, back = (repeated(zip(usable["sentence"], usable[leg], strict=True)) for leg in ("pivot", "back"))
    unambiguous = usable[~usable["pivot"].isin(forth) & ~usable["back"].isin(back)]
    dropped["rejected: given to several different sentences"] += len(usable) - len(unambiguous)
    if shape.training_text == "pairs":
        negatives = pa.nulls(len(unambiguous), pa.string())
        return pa.table([unambiguous["sentence"], unambiguous["back"], negatives], schema=TRIPLES), +dropped
    texts = (
        pd.concat([rows["sentence"], unambiguous["back"]])
        if shape.training_text == "expanded"
        else unambiguous["back"]
    )
    distinct = texts.drop_duplicates()
    dropped["repeated"] += len(texts) - len(distinct)
    origins = base.take(pa.array(rows["row"][distinct.index]))
    return pa.table([distinct, origins["document"], origins["position"]], schema=SENTENCES), +dropped


def gather_round_trips(job: Job) -> None:
    """Join the parts of a translated corpus and keep the rows for training (rule gather_round_trips)."""
    name = job.wildcards["corpus"]
    shape = Shape.parse(job.settings["shape"], f"corpora.{name}.round_trip")
    base = job.read("sentences", SENTENCES)
    parts = [read_table(path, ROUND_TRIPS) for path in job.inputs("trips")]
    trips = pa.concat_tables(parts).sort_by("row")
    asked = base.slice(0, job.settings["max_sentences"])
    if trips["row"].to_pylist() != list(range(len(asked))) or not trips["sentence"].equals(asked["sentence"]):
        problem = f"{len(trips)} rows do not match the corpus's {len(asked)} sentences"
        raise DataError(f"{job.inputs('trips')[0].parent}: {problem}. Delete the folder and run again.")
    thresholds = job.settings["similarity"]
    if thresholds is not None:
        thresholds = Thresholds.parse(thresholds, "round_trip.similarity")
    compared = [read_table(path, TRIP_COSINES) for path in job.inputs("similarities")]
    similarities = pa.concat_tables(compared) if compared else None
    try:
        train, dropped = to_train_on(trips, base, shape, similarities, thresholds)
    except DataError as error:
        raise DataError(f"corpora.{name}: {error}") from None
    if not len(train):
        raise DataError(
            f"corpora.{name}: no round trip can be used for training ({dict(dropped)}). Check the "
            "translator's answers in its parts."
        )
    counts = table_of(sorted(dropped.items()), DROPPED)
    job.write({"train": train, "dropped": counts}, labels=[job.settings["label"]])
