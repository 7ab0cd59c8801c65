"""Settings, as JSON, of the jobs that read sources, translate, or write exemplars."""

from dataclasses import dataclass
from functools import cached_property

from workflow_scripts.data.sources import SourcePlan
from workflow_scripts.graph.slices import as_json
from workflow_scripts.graph.source_plans import source_now, sources_read
from workflow_scripts.graph.study import Study
from workflow_scripts.settings.base import Settings
from workflow_scripts.settings.corpora import Limits, Shape, Thresholds, Translation
from workflow_scripts.settings.sources import READERS, DatasetBlock, FileSource, HubSource
from workflow_scripts.settings.study import Configuration


@dataclass(frozen=True)
class PlannedDataset:
    """A dataset, and the source from which it would be read now."""

    study: Study
    name: str

    @property
    def _block(self) -> DatasetBlock:
        return self.study.settings.datasets[self.name]

    @cached_property
    def source(self) -> SourcePlan:
        """Return the plan of its source."""
        table = f"datasets/{self.name}.parquet"
        return source_now(self.study, table, self._block.sources, optional=self._block.optional)

    @cached_property
    def _sources(self) -> list[FileSource | HubSource]:
        """Return the sources in this plan."""
        return sources_read(self.source, self._block.sources)

    @property
    def settings(self) -> str:
        """Return the settings that determine its rows: without hashes and contract, which can only refuse rows."""
        block = self._block.model_dump(mode="json", exclude={"about", "contract", "sources"})
        read = [source.model_dump(mode="json") for source in self._sources]
        for dumped in (dumped for dumped in read if "files" in dumped):
            dumped["files"] = {role: file["path"] for role, file in dumped["files"].items()}
        return as_json({"dataset": block | {"sources": read}, "source": self.source})

    @property
    def contract(self) -> str:
        """Return these with hashes and contract: a resource, which Snakemake passes on but does not compare."""
        block = self._block.model_dump(mode="json", exclude={"about", "sources"})
        return as_json(block | {"sources": self._sources})

    @property
    def readers(self) -> list[str]:
        """Return the module of the reader of its source."""
        read = (source.reader for source in self._sources if not isinstance(source, HubSource))
        return sorted({f"data.readers.{READERS[reader].module}" for reader in read})


def encoder_source(study: Study, encoder: str) -> SourcePlan:
    """Return the plan of a published encoder's source."""
    block = study.settings.fetched(encoder)
    return source_now(study, f"encoders/{encoder}", block.sources, optional=block.optional, kind="model")


def fetching(study: Study, encoder: str) -> str:
    """Return the settings that determine a fetched encoder, and the source from which it would be copied now."""
    block, source = study.settings.fetched(encoder), encoder_source(study, encoder)
    decides = block.result_fields() | {"sources": sources_read(source, block.sources)}
    return as_json({"encoder": decides, "source": source})


def translation(settings: Configuration, corpus: str) -> str:
    """Return the settings that determine the translated text, without its use and without server and rate."""
    asked = settings.round_trip_behind(corpus).model_dump(include={*Translation.model_fields})
    decides = {name: block.result_fields() for name, block in _engine(settings, corpus).items()}
    return as_json({"translation": asked, **decides})


def translation_service(settings: Configuration, corpus: str) -> str:
    """Return the translator and its settings: a resource, which Snakemake passes on but does not compare."""
    return as_json(_engine(settings, corpus))


def _engine(settings: Configuration, corpus: str) -> dict[str, Settings]:
    """Return the settings of the translator of a corpus, and the limits on its translations."""
    block = settings.translators[settings.round_trip_behind(corpus).translator]
    limits = settings.round_trip.model_dump(include={*Limits.model_fields})
    return {"translator": block, "limits": Limits(**limits)}


def comparison(settings: Configuration) -> str:
    """Return the settings that determine the cosines of round trips with their sentences, without thresholds."""
    compared = settings.round_trip.similarity
    return as_json({"similarity": compared and compared.model_dump(include={"encoder", "max_tokens"})})


def round_trips(settings: Configuration, corpus: str) -> str:
    """Return the settings by which a translation becomes a corpus."""
    trip = settings.round_trip_behind(corpus)
    shape, label = trip.model_dump(include={*Shape.model_fields}), settings.corpora[corpus].label
    compared = settings.round_trip.similarity
    thresholds = compared and compared.model_dump(include={*Thresholds.model_fields})
    rest = {"max_sentences": trip.max_sentences, "label": label}
    return as_json({"shape": shape, "similarity": thresholds, **rest})


def written_pool(settings: Configuration, pool: str) -> str:
    """Return the settings of a pool that a language model writes."""
    block = settings.written_pool(pool)
    return as_json({"pool": block, "llm": settings.llms[block.llm].result_fields()})
