"""The complete configuration of a study, and the settings of one run; only the graph reads them, no job does."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import Field, Tag

from workflow_scripts.errors import ErrorDetails
from workflow_scripts.settings.apis import LlmBlock, TranslatorBlock
from workflow_scripts.settings.base import OPERATIONAL, Settings, told_by
from workflow_scripts.settings.corpora import (
    Corpus,
    ExtractivePool,
    LlmPool,
    RoundTrip,
    RoundTripCorpus,
    RoundTrips,
    Words,
)
from workflow_scripts.settings.encoders import AdaptedEncoder, AnyEncoder, FetchedEncoder
from workflow_scripts.settings.extraction import ExtractionStudy
from workflow_scripts.settings.figures import SharedFigures
from workflow_scripts.settings.grids import Run
from workflow_scripts.settings.methods import AnyMethod, MethodBlock, ReductionBlock
from workflow_scripts.settings.names import Name, Refers
from workflow_scripts.settings.overrides import Override, laid_over
from workflow_scripts.settings.report import Claims, Contamination, Page, Significance
from workflow_scripts.settings.sources import Below, DatasetBlock, EncoderBlock
from workflow_scripts.settings.suites import SUITES, GpuKind, MtebLists, Suites
from workflow_scripts.settings.training import ContinueMlm, Development, TeacherEncoding, Training
from workflow_scripts.settings.wording import read

AnyCorpus = Annotated[
    Annotated[RoundTripCorpus, Tag("round_trip")] | Annotated[Corpus, Tag("dataset")],
    told_by("round_trip", "dataset"),
]


class RunSettings(Settings):
    """The settings of one run, with its reading and all overrides applied."""

    method: AnyMethod
    training: Training
    development: Development

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Refuse a sweep of keys that belong to a method's block but not to its own settings."""
        for key in sorted(self.method.model_fields_set & {"training", "development", "readings"}):
            yield ErrorDetails(
                f"method.{key}",
                "no setting of a method",
                f"Begin the dotted setting with {key}, without method.",
            )


class Report(SharedFigures):
    """Settings of the report: figures and page."""

    page: Page


class DevelopmentBlock(Development):
    """The section ``development``: the development set, and how it selects checkpoints."""

    dataset: Annotated[Name, Refers("datasets", ("pairs",))] | None = Field(
        description="Dataset of scored pairs; null: held-out text of the corpus."
    )


class EvaluationBlock(Settings):
    """Settings of resources of evaluations."""

    on_gpu: list[GpuKind] | None = Field(
        description="Kinds of suites whose jobs request a GPU and encode on it; extraction: the study without "
        "training. null: all kinds, except sts in a queue.",
        json_schema_extra=OPERATIONAL,
    )

    def asks(self, kind: str, *, here: bool) -> bool:
        """Return whether jobs of a kind request a GPU.

        Args:
            kind: Kind of a suite, or ``extraction``.
            here: Whether jobs share GPUs of this machine.
        """
        if self.on_gpu is None:
            return here or kind == "extraction" or SUITES[kind].gpu == "always"
        return kind in self.on_gpu


class Configuration(Settings):
    """The complete configuration of a study."""

    name: Name = Field(description="Name of the study, a folder below results, logs and benchmarks.")
    data_root: str | None = Field(
        description="Folder of local data; null: environment variable SEMBLANCE_DATA."
    )
    experiments: list[Name] = Field(
        min_length=1,
        description="Grids in config/experiments, without suffix; extraction: the extraction study.",
    )
    cache: str = Field(
        min_length=1,
        description="Folder of the cache of finished work, ~ allowed; studies may share it.",
    )
    cache_gigabytes: float = Field(gt=0, description="Maximum size of the cache, in GB.")
    training: Training
    development: DevelopmentBlock
    evaluation: EvaluationBlock
    continue_mlm: ContinueMlm
    corpora: dict[Name, AnyCorpus]
    words: Words
    answer_store: Below = Field(
        description="File of stored answers of translators and language models, relative to the working "
        "directory; environment variable SEMBLANCE_ANSWERS overrides it."
    )
    offline: bool = Field(description="Whether only stored answers are used, and no request is sent.")
    translators: dict[Name, TranslatorBlock]
    llms: dict[Name, LlmBlock]
    round_trip: RoundTrips
    exemplars: dict[Name, Annotated[LlmPool | ExtractivePool, Field(discriminator="generator")]]
    exemplar_pools: list[Annotated[Name, Refers("exemplars")]] = Field(
        description="Exemplar pools to make even if no run uses them."
    )
    teacher: TeacherEncoding
    encoders: dict[Name, AnyEncoder]
    datasets: dict[Name, DatasetBlock]
    methods: dict[Name, MethodBlock] = Field(
        description="Blocks of methods: settings of the module, overrides of training, readings."
    )
    suites: Suites
    mteb: MtebLists
    extraction: ExtractionStudy
    contamination: Contamination | None = Field(
        description="Table of the overlap of corpora and evaluation sets; null for none."
    )
    significance: Significance
    claims: Claims
    report: Report

    def auxiliary_encoders(self) -> set[str | None]:
        """Return the encoders that pools and the comparison of round trips read, without a run."""
        encoders: set[str | None] = {pool.encoder for pool in self.exemplars.values()}
        if self.round_trip.similarity:
            encoders.add(self.round_trip.similarity.encoder)
        return encoders

    def corpus_form(self, corpus: str) -> str | None:
        """Return the form of a corpus, for references to it; None if its dataset has no form of a corpus."""
        block = self.corpora[corpus]
        if isinstance(block, RoundTripCorpus):
            return "triples" if block.round_trip.training_text == "pairs" else "round trips"
        form = self.datasets[block.dataset].form if block.dataset in self.datasets else None
        return form if form in ("sentences", "triples") else None

    def corpus_columns(self, corpus: str) -> Sequence[str]:
        """Return the columns of a corpus that methods can read; round trips have no negatives."""
        if self.corpus_form(corpus) != "triples":
            return ("anchor",)
        negatives = () if isinstance(self.corpora[corpus], RoundTripCorpus) else ("negative",)
        return ("anchor", "positive", *negatives)

    def held_out(self, corpus: str) -> int:
        """Return the number of held-out sentences of a corpus, by which checkpoints are selected."""
        block = self.corpora[self.source_corpus(corpus)]
        return block.dev_sentences if isinstance(block, Corpus) else 0

    def source_corpus(self, corpus: str) -> str:
        """Return the corpus itself, or the one that was translated to make it."""
        block = self.corpora[corpus]
        return block.round_trip.corpus if isinstance(block, RoundTripCorpus) else corpus

    def corpus_datasets(self, corpora: Iterable[str]) -> list[str]:
        """Return the datasets from which corpora are made, and those whose sentences are added."""
        blocks = [self.corpora[self.source_corpus(corpus)] for corpus in corpora]
        cut = (block for block in blocks if isinstance(block, Corpus))
        return sorted({name for block in cut for name in (block.dataset, block.add_sentences_of) if name})

    def round_trip_behind(self, corpus: str) -> RoundTrip:
        """Return the translation by which a corpus is made."""
        block = self.corpora[corpus]
        assert isinstance(block, RoundTripCorpus), f"{corpus} is not translated"
        return block.round_trip

    def written_pool(self, pool: str) -> LlmPool:
        """Return the settings of a pool that a language model writes."""
        block = self.exemplars[pool]
        assert isinstance(block, LlmPool), f"{pool} is picked from a corpus"
        return block

    def fetched(self, encoder: str) -> EncoderBlock:
        """Return the published encoder of this name, or the one from which it is adapted."""
        block = self.encoders[encoder]
        if isinstance(block, AdaptedEncoder):
            return self.fetched(block.adapt.base)
        assert isinstance(block, FetchedEncoder), f"{encoder} consists of runs"
        return block.fetch


class OverrideLayer(NamedTuple):
    """The overrides of a run's settings by one block."""

    path: str
    """Path of the block."""
    override: Override


def layers_of(study: Configuration, run: Run) -> list[OverrideLayer]:
    """Return the overrides of the shared settings of a run, in order of application.

    These are the overrides by its encoder, the wrapped method, its method, its reading and the run itself. A reading
    that the method lacks changes nothing.
    """
    method, encoder = study.methods[run.method], study.encoders.get(run.encoder)
    layers = (
        [OverrideLayer(f"encoders.{run.encoder}", Override(training=encoder.training))] if encoder else []
    )
    below = [method.base] if isinstance(method, ReductionBlock) else []
    for name in (*below, run.method):
        block = study.methods[name]
        override = Override(training=block.training, development=block.development)
        layers.append(OverrideLayer(f"methods.{name}", override))
    if run.reading in method.readings:
        layers.append(
            OverrideLayer(f"methods.{run.method}.readings.{run.reading}", method.readings[run.reading])
        )
    return [*layers, OverrideLayer("overrides", run.overrides)]


def read_run(
    study: Configuration, run: Run, *, partial: bool = False
) -> tuple[RunSettings | None, list[ErrorDetails]]:
    """Return the settings of one run, or None and the errors about them.

    Args:
        study: The configuration.
        run: The run.
        partial: Whether to check only keys, types and ranges, because the study has no such run.
    """
    return read(RunSettings, written(study, run), partial=partial)


def written(study: Configuration, run: Run) -> dict[str, Any]:
    """Return the settings of one run as in files: the shared ones, with all overrides applied."""
    block = study.methods[run.method]
    method = block.given()
    if isinstance(block, ReductionBlock):
        method["base"] = study.methods[block.base].given()
    development = study.development.given()
    development.pop("dataset", None)
    shared = {"method": method, "training": study.training.given(), "development": development}
    return laid_over(shared, *(layer.override.given() for layer in layers_of(study, run)))
