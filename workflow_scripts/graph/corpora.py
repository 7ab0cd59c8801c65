"""Datasets and encoders by their sources now, and what decides translations and written pools."""

from dataclasses import dataclass
from functools import cached_property

from workflow_scripts.config import Settings
from workflow_scripts.graph.call import as_json
from workflow_scripts.graph.outside import source_now, sources_read
from workflow_scripts.graph.schema import Configuration
from workflow_scripts.graph.study import Study
from workflow_scripts.settings.corpora import Shape, Translation
from workflow_scripts.settings.sources import DatasetBlock, FileSource, HubSource


@dataclass(frozen=True)
class Dataset:
    """A dataset, and what it would be read from now."""

    study: Study
    name: str

    @property
    def _block(self) -> DatasetBlock:
        return self.study.settings.datasets[self.name]

    @cached_property
    def source(self) -> str:
        """The name of what it would be read from."""
        table = f"datasets/{self.name}.parquet"
        return source_now(self.study, table, self._block.sources, optional=self._block.optional)

    @cached_property
    def _sources(self) -> list[FileSource | HubSource]:
        """Its sources now."""
        return sources_read(self.source, self._block.sources)

    @property
    def settings(self) -> str:
        """Settings that decide its rows: without pinned hashes and the contract, which can only refuse some."""
        block = self._block.model_dump(mode="json", exclude={"about", "contract", "sources"})
        read = [source.model_dump(mode="json") for source in self._sources]
        for one in (one for one in read if "files" in one):
            one["files"] = {role: file["path"] for role, file in one["files"].items()}
        return as_json({"dataset": block | {"sources": read}, "source": self.source})

    @property
    def contract(self) -> str:
        """The same with all that refuses rows: a resource, which Snakemake passes on without comparing it."""
        block = self._block.model_dump(mode="json", exclude={"about", "sources"})
        return as_json(block | {"sources": self._sources})

    @property
    def readers(self) -> list[str]:
        """The module that reads its source now, and no other."""
        read = (source.reader for source in self._sources if not isinstance(source, HubSource))
        return sorted({f"data.readers.{reader}" for reader in read})


def fetching(study: Study, encoder: str) -> str:
    """Settings that decide a fetched encoder, and the source that it would be copied from now."""
    block = study.settings.fetched(encoder)
    source = source_now(study, f"encoders/{encoder}", block.sources)
    decides = block.deciding() | {"sources": sources_read(source, block.sources)}
    return as_json({"encoder": decides, "source": source})


def translation(settings: Configuration, corpus: str) -> str:
    """Settings of the translation of a corpus: what decides the text, not what is made of it, or who is asked."""
    asked = settings.round_trip_behind(corpus).model_dump(include={*Translation.model_fields})
    decides = {name: block.deciding() for name, block in _engine(settings, corpus).items()}
    return as_json({"translation": asked, **decides})


def translation_service(settings: Configuration, corpus: str) -> str:
    """The translator and its settings: a resource, which Snakemake passes on without comparing it."""
    return as_json(_engine(settings, corpus))


def _engine(settings: Configuration, corpus: str) -> dict[str, Settings]:
    """The blocks behind a translation."""
    block = settings.translators[settings.round_trip_behind(corpus).translator]
    return {"translator": block, "limits": settings.round_trip}


def round_trips(settings: Configuration, corpus: str) -> str:
    """Settings of what is made of a translation."""
    trip = settings.round_trip_behind(corpus)
    shape, label = trip.model_dump(include={*Shape.model_fields}), settings.corpora[corpus].label
    return as_json({"shape": shape, "max_sentences": trip.max_sentences, "label": label})


def written_pool(settings: Configuration, pool: str) -> str:
    """Settings of a pool that a language model writes."""
    block = settings.written_pool(pool)
    return as_json({"pool": block, "llm": settings.llms[block.llm].deciding()})
