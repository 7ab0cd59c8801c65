"""Translate one part of a corpus and translate it back (rule translate_shard)."""

import hashlib
import json
from typing import Any

from workflow_scripts.apis.store import AnswerStore, is_offline, store_path
from workflow_scripts.apis.translators import Translator, TranslatorSlice, translate_all, translator_of
from workflow_scripts.artefacts import read_table, write_table
from workflow_scripts.data.round_trips import Limits, Translation, round_trips, rows_of_shard
from workflow_scripts.errors import one_line_errors
from workflow_scripts.job import parse_job
from workflow_scripts.provenance import Input
from workflow_scripts.schemas import SENTENCES


def main() -> None:
    """Read the part, ask both ways for what the store lacks, write every row with what became of it."""
    job = parse_job(
        "translate_shard",
        __doc__,
        wildcards=["corpus", "scatteritem"],
        inputs=["sentences"],
        outputs=["trips"],
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
    """How the record names an engine, and the hash of what it answered here."""
    name = " ".join(translator.identity[part] for part in ("engine", "version", "from", "to"))
    digest = hashlib.sha256(json.dumps(answers).encode()).hexdigest()
    return Input(path=f"translator:{name}", sha256=digest)


if __name__ == "__main__":
    with one_line_errors():
        main()
