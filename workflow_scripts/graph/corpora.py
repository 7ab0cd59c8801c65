"""What the rules of sources, corpora, translations and exemplars look up."""

from functools import cache

from workflow_scripts.graph.outside import source_now, sources_of
from workflow_scripts.graph.references import base_of
from workflow_scripts.graph.slices import Config, Wildcards, as_json, deciding
from workflow_scripts.graph.study import Lookups, Study
from workflow_scripts.settings.apis import LlmBlock, TranslatorSlice
from workflow_scripts.settings.corpora import Limits


class Corpora(Lookups):
    """Lookups by a job's wildcards."""

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self._source = cache(self._source_of)
        blocks = study.config["corpora"]
        self.cut = [name for name, block in blocks.items() if "dataset" in block]
        self.round_trips = [name for name, block in blocks.items() if "round_trip" in block]

    def pools(self, generator: str) -> list[str]:
        """Pools of exemplars that ``generator`` (llm, extractive) makes."""
        return [name for name, block in self._config["exemplars"].items() if block["generator"] == generator]

    def dataset(self, wildcards: Wildcards) -> str:
        """Settings of reading a dataset, and its source now.

        Pinned hashes and the contract refuse what is read, and decide nothing, unless what they refuse is a gap.
        """
        block, source = self._block(wildcards.dataset), self._source(wildcards.dataset)
        if block.get("optional") and self._config["broken"] == "gap":
            return as_json({"dataset": block, "source": source, "broken": "gap"})
        unpinned = [
            one | {"files": {role: file["path"] for role, file in one["files"].items()}}
            if "files" in one
            else one
            for one in block.pop("sources")
        ]
        del block["contract"]
        return as_json({"dataset": block | {"sources": unpinned}, "source": source})

    def dataset_as_asked(self, wildcards: Wildcards) -> str:
        """The same with all that refuses: a resource, which Snakemake passes on without comparing it."""
        return as_json(self._block(wildcards.dataset))

    def _block(self, dataset: str) -> Config:
        """A block of a dataset with its sources now; ``about`` is for people."""
        block = self._config["datasets"][dataset]
        sources = sources_of(self._source(dataset), block["sources"])
        return {key: value for key, value in block.items() if key != "about"} | {"sources": sources}

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

    def _round_trip(self, wildcards: Wildcards) -> Config:
        trip: Config = self._config["corpora"][wildcards.corpus]["round_trip"]
        return trip

    def translation(self, wildcards: Wildcards) -> str:
        """Settings of a translation: what decides the text, and not what is made of it later, or who is asked."""
        trip = self._round_trip(wildcards)
        translation = {key: trip[key] for key in ("corpus", "translator", "source", "via", "max_sentences")}
        blocks = self._blocks(trip["translator"])
        kind = type(
            TranslatorSlice.parse({"translator": blocks["translator"]}, trip["translator"]).translator
        )
        kinds = {"translator": kind, "limits": Limits, "llm": LlmBlock}
        return as_json(
            {"translation": translation, **{name: deciding(blocks[name], kinds[name]) for name in blocks}}
        )

    def translation_service(self, wildcards: Wildcards) -> str:
        """Who translates, and how: a resource, which Snakemake passes on without comparing it."""
        return as_json(self._blocks(self._round_trip(wildcards)["translator"]))

    def translation_prompt(self, wildcards: Wildcards) -> list[str]:
        """The prompt of a translation by a language model."""
        prompt = self._config["translators"][self._round_trip(wildcards)["translator"]].get("prompt")
        return [f"resources/prompts/{prompt}.txt"] if prompt else []

    def _blocks(self, translator: str) -> dict[str, Config]:
        """The blocks behind a translation."""
        block = self._config["translators"][translator]
        llm = {"llm": self._config["llms"][block["llm"]]} if "llm" in block else {}
        return {"translator": block, "limits": self._config["round_trip"], **llm}

    def round_trip_form(self, wildcards: Wildcards) -> str:
        """Settings of what is made of a translation."""
        trip, label = self._round_trip(wildcards), self._config["corpora"][wildcards.corpus]["label"]
        shape = {key: trip[key] for key in ("form", "unchanged")}
        return as_json({"shape": shape, "max_sentences": trip["max_sentences"], "label": label})

    def written_pool(self, wildcards: Wildcards) -> str:
        """Settings of a pool that a language model writes."""
        pool = self._config["exemplars"][wildcards.pool]
        llm = deciding(self._config["llms"][pool["llm"]], LlmBlock)
        return as_json({"pool": pool, "llm": llm})

    def pool_service(self, wildcards: Wildcards) -> str:
        """The language model that writes a pool, and how it is asked: a resource."""
        return as_json({"llm": self._config["llms"][self._config["exemplars"][wildcards.pool]["llm"]]})
