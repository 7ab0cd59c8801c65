"""Ask every engine that a study needs one question, so that one that does not answer is known before the first job."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from workflow_scripts.apis.asking import Engine, probe
from workflow_scripts.apis.ledger import Ledger
from workflow_scripts.apis.llm import Llm
from workflow_scripts.apis.translators import Direction, make_translator
from workflow_scripts.errors import SemblanceError
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.settings.apis import LlmBlock, TranslatorSlice
from workflow_scripts.verbs.plan import PlannedJob

SENTENCE = "The river rose after the rain."


def answers(config: Mapping[str, Any], jobs: Iterable[PlannedJob]) -> Iterator[tuple[bool, str]]:
    """For each engine that jobs need, whether it answers one question; and a line for each direction that it lacks."""
    asked = {
        (job.rule, job.wildcards.get("corpus") or job.wildcards.get("pool"))
        for job in jobs
        if "api_calls" in job.queued
    }
    engines: dict[str, Engine] = {}
    with TemporaryDirectory() as folder, Ledger(Path(folder, "probe.sqlite")) as ledger:
        for rule, name in sorted(asked):
            try:
                engine = (_translator if rule == "translate_shard" else _llm)(config, str(name), ledger)
                engines[engine.place] = engine
            except SemblanceError as error:
                yield False, str(error)
        for place, engine in engines.items():
            try:
                row = probe(engine, SENTENCE)
            except SemblanceError as error:
                yield False, str(error)
                continue
            said = repr(" ".join((row.answer or "").split())[:60])
            if row.status == "usable":
                yield True, f"{place}: answers, {said}"
            else:
                found = f"{place}: {row.status}, {row.reason}: {said}"
                yield False, f"{found}. Start the service, or correct its block in config/apis.yaml."


def _translator(config: Mapping[str, Any], corpus: str, ledger: Ledger) -> Engine:
    trip = config["corpora"][corpus]["round_trip"]
    place = f"translators.{trip['translator']}"
    block = TranslatorSlice.parse({"translator": config["translators"][trip["translator"]]}, place).translator
    llm, prompt = None, None
    if block.engine == "llm":
        llm = LlmBlock.parse(config["llms"][block.llm], f"llms.{block.llm}")
        prompt = (ROOT / f"resources/prompts/{block.prompt}.txt").read_text("utf-8")
    direction = Direction(place=place, source=trip["source"], target=trip["via"])
    return make_translator(block, direction, ledger, llm=llm, prompt=prompt)


def _llm(config: Mapping[str, Any], pool: str, ledger: Ledger) -> Engine:
    name = config["exemplars"][pool]["llm"]
    return Llm(LlmBlock.parse(config["llms"][name], f"llms.{name}"), f"llms.{name}", ledger)
