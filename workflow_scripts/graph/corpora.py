"""What the rules of sources, corpora, translations and exemplars look up."""

from functools import cache

from workflow_scripts.config import Settings
from workflow_scripts.graph.outside import source_now, sources_of
from workflow_scripts.graph.references import base_of
from workflow_scripts.graph.slices import Config, Wildcards, as_json, deciding
from workflow_scripts.graph.study import Study
from workflow_scripts.settings.llms import LlmBlock
from workflow_scripts.settings.round_trips import Limits
from workflow_scripts.settings.translators import TranslatorSlice


class Corpora:
    """Lookups by a job's wildcards."""

    def __init__(self, study: Study) -> None:
        self._config = study.config
        self._study = study
        self._source = cache(self._source_of)
        blocks = study.config["corpora"]
        self.cut = [name for name, block in blocks.items() if "dataset" in block]
        self.round_trips = [name for name, block in blocks.items() if "round_trip" in block]

    def pools(self, generator: str) -> list[str]:
        """Pools of exemplars that ``generator`` (llm, extractive) makes."""
        return [name for name, block in self._config["exemplars"].items() if block["generator"] == generator]

    def dataset(self, wildcards: Wildcards) -> str:
        """Settings of reading a dataset, and its source now.

        ``about`` is for people.
        """
        name = wildcards.dataset
        block = self._config["datasets"][name]
        decides = {key: value for key, value in block.items() if key != "about"}
        source = self._source(name)
        decides["sources"] = sources_of(source, block["sources"])
        may_be_gap = block.get("optional") and self._config["broken"] == "gap"
        broken = {"broken": "gap"} if may_be_gap else {}
        return as_json({"dataset": decides, "source": source, **broken})

    def _source_of(self, dataset: str) -> str:
        """The name of what a dataset would be read from now."""
        block, table = self._config["datasets"][dataset], f"datasets/{dataset}.parquet"
        return source_now(self._study, table, block["sources"], optional=block.get("optional", False))

    def readers(self, wildcards: Wildcards) -> list[str]:
        """The reader of a dataset's source now, and no other."""
        dataset = wildcards.dataset
        sources = sources_of(self._source(dataset), self._config["datasets"][dataset]["sources"])
        return sorted({f"data.readers.{source['reader']}" for source in sources if "reader" in source})

    def base(self, wildcards: Wildcards) -> str:
        """The sentences that a round trip starts from."""
        return f"<results>/corpora/{base_of(self._config, wildcards.corpus)}/train.parquet"

    def translation(self, wildcards: Wildcards) -> str:
        """Settings of a translation: what decides the text, and not what is made of it later, or who is asked."""
        trip = self._config["corpora"][wildcards.corpus]["round_trip"]
        translation = {key: trip[key] for key in ("corpus", "translator", "source", "via", "max_sentences")}
        blocks = self._blocks(trip["translator"])
        parts = {name: deciding(block, kind) for name, (block, kind) in blocks.items()}
        return as_json({"translation": translation, **parts})

    def translation_service(self, wildcards: Wildcards) -> str:
        """Who translates, and how, a resource: what Snakemake passes on and does not compare."""
        blocks = self._blocks(self._config["corpora"][wildcards.corpus]["round_trip"]["translator"])
        return as_json({name: block for name, (block, _) in blocks.items()})

    def translation_prompt(self, wildcards: Wildcards) -> list[str]:
        """The prompt of a translation by a language model."""
        translator = self._config["translators"][
            self._config["corpora"][wildcards.corpus]["round_trip"]["translator"]
        ]
        return [f"resources/prompts/{translator['prompt']}.txt"] if "prompt" in translator else []

    def _blocks(self, translator: str) -> dict[str, tuple[Config, type[Settings]]]:
        """The blocks behind a translation, with their classes."""
        block = self._config["translators"][translator]
        llm = {"llm": (self._config["llms"][block["llm"]], LlmBlock)} if "llm" in block else {}
        limits = (self._config["round_trip"], Limits)
        kind = type(TranslatorSlice.parse({"translator": block}, translator).translator)
        return {"translator": (block, kind), "limits": limits, **llm}

    def round_trip_form(self, wildcards: Wildcards) -> str:
        """Settings of what is made of a translation."""
        block = self._config["corpora"][wildcards.corpus]
        trip = block["round_trip"]
        shape = {key: trip[key] for key in ("form", "unchanged")}
        return as_json({"shape": shape, "max_sentences": trip["max_sentences"], "label": block["label"]})

    def written_pool(self, wildcards: Wildcards) -> str:
        """Settings of a pool that a language model writes."""
        pool = self._config["exemplars"][wildcards.pool]
        llm = deciding(self._config["llms"][pool["llm"]], LlmBlock)
        return as_json({"pool": pool, "llm": llm})

    def pool_service(self, wildcards: Wildcards) -> str:
        """The language model that writes a pool, and how it is asked, a resource."""
        return as_json({"llm": self._config["llms"][self._config["exemplars"][wildcards.pool]["llm"]]})
