"""Translate one part of a corpus and translate it back (rule translate_shard)."""

import hashlib
import json
from functools import partial

from workflow_scripts.apis.ledger import Ledger, Row, is_offline, ledger_path
from workflow_scripts.apis.translators import Direction, Translator, make_translator, translate_all
from workflow_scripts.columns import SENTENCES
from workflow_scripts.data.round_trips import round_trips, shard_rows, usable_answers
from workflow_scripts.provenance.job import Job
from workflow_scripts.provenance.record import Input
from workflow_scripts.settings.apis import TranslatorSlice
from workflow_scripts.settings.corpora import Limits, Translation


def translate_shard(job: Job) -> None:
    """Read the part, translate forth and back what is not in the ledger, write every row with its outcome."""
    settings = Translation.parse(job.settings["translation"], f"corpora.{job.wildcards['corpus']}.round_trip")
    limits = Limits.parse(job.operational["service"]["limits"] | job.settings["limits"], "round_trip")
    base = job.read("sentences", SENTENCES, ["sentence"]).slice(0, settings.max_sentences)
    rows = shard_rows(len(base), job.wildcards["scatteritem"])
    sentences = base["sentence"].slice(rows.start, len(rows)).to_pylist()
    max_unanswered = int(limits.refused_share * len(sentences))
    there = Direction(place=f"translators.{settings.translator}", source=settings.source, target=settings.via)
    offline = is_offline()
    with Ledger(ledger_path(), read_only=offline and ledger_path().exists()) as ledger:
        forth, back = (_translator(job, direction, ledger) for direction in (there, there.back))
        translate = partial(translate_all, ledger=ledger, offline=offline, max_unanswered=max_unanswered)
        pivots = translate(sentences, forth)
        backs = translate(usable_answers(pivots), back)
    origin = {"forth": _source(forth, pivots), "back": _source(back, backs)}
    job.write({"trips": round_trips(rows, sentences, pivots, backs, limits)}, foreign=origin)


def _translator(job: Job, direction: Direction, ledger: Ledger) -> Translator:
    block = TranslatorSlice.parse(
        {"translator": job.operational["service"]["translator"] | job.settings["translator"]}, direction.place
    ).translator
    return make_translator(block, direction, ledger)


def _source(translator: Translator, rows: list[Row | None]) -> Input:
    """The record's entry for an engine, with the hash of its answers."""
    direction = translator.direction
    name = " ".join(filter(None, [translator.name, translator.model, direction.source, direction.target]))
    digest = hashlib.sha256(json.dumps(usable_answers(rows)).encode()).hexdigest()
    return Input(path=f"translator:{name}", sha256=digest)
