"""The whole configuration of a study, and the settings of one of its runs; the graph reads them, and no job does."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import Field, Tag

from workflow_scripts.errors import Finding
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
    """The settings of one run, of which a reading and overrides may change any."""

    method: AnyMethod
    training: Training
    development: Development

    def conflicts(self) -> Iterator[Finding]:
        """Refuse a sweep of what is no setting of the method."""
        for key in sorted(self.method.model_fields_set & {"training", "development", "readings"}):
            yield Finding(f"method.{key}", "no setting of a method", f"Sweep {key} without method.")


class Report(SharedFigures):
    """Figures and page."""

    page: Page


class DevelopmentBlock(Development):
    """The development set."""

    dataset: Annotated[Name, Refers("datasets", ("pairs",))] | None = Field(
        description="Scored pairs; null takes held-out text of the corpus."
    )


class EvaluationBlock(Settings):
    """Resources of evaluations."""

    on_gpu: list[GpuKind] | None = Field(
        description="Kinds of suites whose jobs ask for a GPU each and encode there; extraction: that study. "
        "null: all, but in a queue not sts.",
        json_schema_extra=OPERATIONAL,
    )

    def asks(self, kind: str, *, here: bool) -> bool:
        """Whether jobs of a kind ask for a GPU.

        Args:
            kind: Of a suite, or ``extraction``.
            here: Whether jobs share GPUs of this machine.
        """
        if self.on_gpu is None:
            return here or kind == "extraction" or SUITES[kind].gpu == "always"
        return kind in self.on_gpu


class Configuration(Settings):
    """The whole configuration."""

    name: Name = Field(description="Folder below results, logs and benchmarks.")
    data_root: str | None = Field(description="Folder of local data sets; null takes SEMBLANCE_DATA.")
    experiments: list[Name] = Field(
        min_length=1, description="Grids in config/experiments; extraction: the extraction study."
    )
    cache: str = Field(
        min_length=1,
        description="Folder in which finished work is found again, ~ allowed; any studies may share it.",
    )
    cache_gigabytes: float = Field(gt=0, description="The size that it is kept below.")
    training: Training
    development: DevelopmentBlock
    evaluation: EvaluationBlock
    continue_mlm: ContinueMlm
    corpora: dict[Name, AnyCorpus]
    words: Words
    answers: Below = Field(
        description="File, below the folder of the study, in which answers of translators and language models are "
        "kept; the environment variable SEMBLANCE_ANSWERS may name another place."
    )
    offline: bool = Field(description="Ask no translator or language model: kept answers alone.")
    translators: dict[Name, TranslatorBlock]
    llms: dict[Name, LlmBlock]
    round_trip: RoundTrips
    exemplars: dict[Name, Annotated[LlmPool | ExtractivePool, Field(discriminator="generator")]]
    exemplar_pools: list[Annotated[Name, Refers("exemplars")]] = Field(
        description="Pools that are made though no method may ask for them."
    )
    teacher: TeacherEncoding
    encoders: dict[Name, AnyEncoder]
    datasets: dict[Name, DatasetBlock]
    methods: dict[Name, MethodBlock] = Field(
        description="Settings of its module, overrides of training, and readings."
    )
    suites: Suites
    mteb: MtebLists
    extraction: ExtractionStudy
    contamination: Contamination | None = Field(
        description="Overlap of corpora and evaluation sets; null to leave it out."
    )
    significance: Significance
    claims: Claims
    report: Report

    def auxiliary_encoders(self) -> set[str | None]:
        """Return the encoders that are read without a run: by pools, and to compare round trips."""
        encoders: set[str | None] = {pool.encoder for pool in self.exemplars.values()}
        if self.round_trip.similarity:
            encoders.add(self.round_trip.similarity.encoder)
        return encoders

    def corpus_form(self, corpus: str) -> str | None:
        """Return the form of a corpus, for those who refer to it; None if its dataset is none of a corpus."""
        block = self.corpora[corpus]
        if isinstance(block, RoundTripCorpus):
            return "triples" if block.round_trip.form == "pairs" else "round trips"
        form = self.datasets[block.dataset].form if block.dataset in self.datasets else None
        return form if form in ("sentences", "triples") else None

    def corpus_columns(self, corpus: str) -> Sequence[str]:
        """Return the columns that a method can read of a corpus; round trips have no negatives."""
        if self.corpus_form(corpus) != "triples":
            return ("anchor",)
        negatives = () if isinstance(self.corpora[corpus], RoundTripCorpus) else ("negative",)
        return ("anchor", "positive", *negatives)

    def held_out(self, corpus: str) -> int:
        """Return the number of sentences that a corpus holds out for choosing checkpoints."""
        block = self.corpora[self.source_corpus(corpus)]
        return block.dev_sentences if isinstance(block, Corpus) else 0

    def source_corpus(self, corpus: str) -> str:
        """The corpus that is cut from a dataset, behind one that is made from it."""
        block = self.corpora[corpus]
        return block.round_trip.corpus if isinstance(block, RoundTripCorpus) else corpus

    def corpus_datasets(self, corpora: Iterable[str]) -> list[str]:
        """Datasets that corpora are cut from, and those whose sentences are added to them."""
        blocks = [self.corpora[self.source_corpus(corpus)] for corpus in corpora]
        cut = (block for block in blocks if isinstance(block, Corpus))
        return sorted({name for block in cut for name in (block.dataset, block.also) if name})

    def round_trip_behind(self, corpus: str) -> RoundTrip:
        """The translation of a corpus that is made by one."""
        block = self.corpora[corpus]
        assert isinstance(block, RoundTripCorpus), f"{corpus} is not translated"
        return block.round_trip

    def written_pool(self, pool: str) -> LlmPool:
        """A pool that a language model writes."""
        block = self.exemplars[pool]
        assert isinstance(block, LlmPool), f"{pool} is picked from a corpus"
        return block

    def fetched(self, encoder: str) -> EncoderBlock:
        """The published encoder that one with this name is, or is adapted from."""
        block = self.encoders[encoder]
        if isinstance(block, AdaptedEncoder):
            return self.fetched(block.adapt.base)
        assert isinstance(block, FetchedEncoder), f"{encoder} consists of runs"
        return block.fetch


class Layer(NamedTuple):
    """What one block lays over the settings of a run."""

    place: str
    """Path of the block."""
    override: Override


def layers_of(study: Configuration, run: Run) -> list[Layer]:
    """Return what is laid over the shared settings of a run, the last on top.

    That is what its encoder, the method underneath, its method, its reading and the run itself override. A reading
    that the method lacks changes nothing.
    """
    method, encoder = study.methods[run.method], study.encoders.get(run.encoder)
    layers = [Layer(f"encoders.{run.encoder}", Override(training=encoder.training))] if encoder else []
    below = [method.base] if isinstance(method, ReductionBlock) else []
    for name in (*below, run.method):
        block = study.methods[name]
        override = Override(training=block.training, development=block.development)
        layers.append(Layer(f"methods.{name}", override))
    if run.reading in method.readings:
        layers.append(Layer(f"methods.{run.method}.readings.{run.reading}", method.readings[run.reading]))
    return [*layers, Layer("overrides", run.overrides)]


def read_run(
    study: Configuration, run: Run, *, partial: bool = False
) -> tuple[RunSettings | None, list[Finding]]:
    """Read the settings of one run, or return what is wrong with them.

    Args:
        study: The configuration.
        run: The run.
        partial: Whether the study makes no such run, so that only keys, types and ranges are checked.
    """
    return read(RunSettings, written(study, run), partial=partial)


def written(study: Configuration, run: Run) -> dict[str, Any]:
    """Return the settings of one run as files have them: the shared ones, with all layers laid over them."""
    block = study.methods[run.method]
    method = block.given()
    if isinstance(block, ReductionBlock):
        method["base"] = study.methods[block.base].given()
    development = study.development.given()
    development.pop("dataset", None)
    shared = {"method": method, "training": study.training.given(), "development": development}
    return laid_over(shared, *(layer.override.given() for layer in layers_of(study, run)))
