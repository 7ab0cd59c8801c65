"""Translate one part of a corpus and translate it back (rule translate_shard)."""

import hashlib
import json
from typing import Any

from workflow_scripts.apis.store import AnswerStore, is_offline, store_path
from workflow_scripts.apis.translators import Translator, TranslatorSlice, translate_all, translator_of
from workflow_scripts.columns.corpora import SENTENCES
from workflow_scripts.data.round_trips import Limits, Translation, round_trips, rows_of_shard
from workflow_scripts.errors import one_line_errors
from workflow_scripts.provenance.artefacts import read_table, write_table
from workflow_scripts.provenance.job import parse_job
from workflow_scripts.provenance.record import Input


def main() -> None:
    """Read the part, translate forth and back what is not in the store, write every row with its outcome."""
    job = parse_job(
        "translate_shard",
        __doc__,
        wildcards=["corpus", "scatteritem"],
        inputs=["sentences"],
        outputs=["trips"],
        asks_outside=True,
    )
    settings = Translation.parse(job.settings["translation"], f"corpora.{job.wildcards['corpus']}.round_trip")
    limits = Limits.parse(job.settings["limits"], "round_trip")
    place = f"translators.{settings.translator}"
    block = TranslatorSlice.parse({"translator": job.settings["translator"]}, place).translator
    base = read_table(job.inputs["sentences"], SENTENCES, ["sentence"]).slice(0, settings.max_sentences)
    rows = rows_of_shard(len(base), job.wildcards["scatteritem"])
    sentences = base["sentence"].slice(rows.start, len(rows)).to_pylist()
    forth = translator_of(block, place, settings.source, settings.via)
    back = translator_of(block, place, settings.via, settings.source)
    asking: dict[str, Any] = {
        "place": place,
        "offline": is_offline(),
        "refusals": int(limits.refused_share * len(sentences)),
    }
    with AnswerStore(store_path()) as store:
        pivots = translate_all(sentences, forth, store, **asking)
        backs = translate_all(pivots, back, store, **asking)
    origin = {"forth": _source(forth, pivots), "back": _source(back, backs)}
    trips = round_trips(rows, sentences, pivots, backs, limits)
    write_table(job.outputs["trips"], trips, job.record(foreign=origin))


def _source(translator: Translator, answers: list[str | None]) -> Input:
    """The record's entry for an engine, with the hash of its answers."""
    name = " ".join(translator.identity[part] for part in ("engine", "version", "from", "to"))
    digest = hashlib.sha256(json.dumps(answers).encode()).hexdigest()
    return Input(path=f"translator:{name}", sha256=digest)


if __name__ == "__main__":
    with one_line_errors():
        main()
