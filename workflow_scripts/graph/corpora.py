"""Datasets and encoders by their sources now, and what decides translations and written pools."""

from dataclasses import dataclass
from functools import cached_property

from workflow_scripts.graph.outside import source_now, sources_read
from workflow_scripts.graph.slices import Config, as_json, deciding
from workflow_scripts.graph.study import Study
from workflow_scripts.settings.apis import LlmBlock, TranslatorSlice
from workflow_scripts.settings.corpora import Limits
from workflow_scripts.settings.encoders import EncoderBlock


@dataclass(frozen=True)
class Dataset:
    """A dataset, and what it would be read from now."""

    study: Study
    name: str

    @cached_property
    def source(self) -> str:
        """The name of what it would be read from."""
        block, table = self.study.config["datasets"][self.name], f"datasets/{self.name}.parquet"
        return source_now(self.study, table, block["sources"], optional=block.get("optional", False))

    @property
    def _block(self) -> Config:
        """Its block with its sources now; ``about`` is for people."""
        block = self.study.config["datasets"][self.name]
        sources = sources_read(self.source, block["sources"])
        return {key: value for key, value in block.items() if key != "about"} | {"sources": sources}

    @property
    def settings(self) -> str:
        """Settings that decide its rows: without pinned hashes and the contract, unless a refusal becomes a gap."""
        block = self._block
        if block.get("optional") and self.study.config["broken"] == "gap":
            return as_json({"dataset": block, "source": self.source, "broken": "gap"})
        unpinned = [
            one | {"files": {role: file["path"] for role, file in one["files"].items()}}
            if "files" in one
            else one
            for one in block.pop("sources")
        ]
        del block["contract"]
        return as_json({"dataset": block | {"sources": unpinned}, "source": self.source})

    @property
    def contract(self) -> str:
        """The same with all that refuses rows: a resource, which Snakemake passes on without comparing it."""
        return as_json(self._block)

    @property
    def readers(self) -> list[str]:
        """The module that reads its source now, and no other."""
        return sorted(
            {f"data.readers.{source['reader']}" for source in self._block["sources"] if "reader" in source}
        )


def fetching(study: Study, encoder: str) -> str:
    """Settings that decide a fetched encoder, and the source that it would be copied from now."""
    block = study.config["encoders"][encoder]["fetch"]
    source = source_now(study, f"encoders/{encoder}", block["sources"])
    decides = deciding(block, EncoderBlock) | {"sources": sources_read(source, block["sources"])}
    return as_json({"encoder": decides, "source": source})


def translation(config: Config, corpus: str) -> str:
    """Settings of the translation of a corpus: what decides the text, not what is made of it, or who is asked."""
    trip, blocks = config["corpora"][corpus]["round_trip"], _engine(config, corpus)
    slice_ = TranslatorSlice.parse({"translator": blocks["translator"]}, trip["translator"])
    kinds = {"translator": type(slice_.translator), "limits": Limits}
    asked = {key: trip[key] for key in ("corpus", "translator", "source", "via", "max_sentences")}
    return as_json({"translation": asked} | {name: deciding(blocks[name], kinds[name]) for name in blocks})


def translation_service(config: Config, corpus: str) -> str:
    """The translator and its settings: a resource, which Snakemake passes on without comparing it."""
    return as_json(_engine(config, corpus))


def _engine(config: Config, corpus: str) -> dict[str, Config]:
    """The blocks behind a translation."""
    block = config["translators"][config["corpora"][corpus]["round_trip"]["translator"]]
    return {"translator": block, "limits": config["round_trip"]}


def round_trips(config: Config, corpus: str) -> str:
    """Settings of what is made of a translation."""
    block = config["corpora"][corpus]
    trip = block["round_trip"]
    shape = {key: trip[key] for key in ("form", "unchanged")}
    return as_json({"shape": shape, "max_sentences": trip["max_sentences"], "label": block["label"]})


def written_pool(config: Config, pool: str) -> str:
    """Settings of a pool that a language model writes."""
    block = config["exemplars"][pool]
    return as_json({"pool": block, "llm": deciding(config["llms"][block["llm"]], LlmBlock)})
