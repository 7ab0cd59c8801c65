"""The whole configuration, and the grids that it asks for, as one model; the graph reads it, and no job does."""

from collections.abc import Iterable, Iterator
from functools import cached_property, reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from pydantic import AfterValidator, Field, JsonValue, Tag, create_model

from workflow_scripts.config import OPERATIONAL, Settings, told_by
from workflow_scripts.figures.cosine_density import CosineDensity
from workflow_scripts.figures.curves import LearningCurves, WordFrequencies
from workflow_scripts.figures.extraction import LayerLines, MixingMap, VariantScatter
from workflow_scripts.figures.maps import AttentionMaps, LayerAttention, TokenSimilarity
from workflow_scripts.figures.modulus_surface import ModulusSurface
from workflow_scripts.figures.tables import AlignmentUniformity, Scatter, Sweep
from workflow_scripts.graph.configuration import read
from workflow_scripts.settings.apis import LlmBlock, TranslatorBlock
from workflow_scripts.settings.corpora import (
    Corpus,
    ExtractivePool,
    LlmPool,
    RoundTrip,
    RoundTripCorpus,
    RoundTrips,
    Words,
)
from workflow_scripts.settings.extraction import (
    Averages,
    Block,
    ExtractionTable,
    Measure,
    Model,
    Postprocessing,
    Representation,
    Show,
    Statistics,
    SuiteNames,
    Weighting,
    Wikitext,
)
from workflow_scripts.settings.grids import (
    AnyColumn,
    AnyGrid,
    Column,
    Experiment,
    GainColumn,
    MeanColumn,
    PathColumn,
    RatioColumn,
    RunBlock,
    TaskColumns,
)
from workflow_scripts.settings.methods import AnyMethod, PlainMethod, ReductionBlock
from workflow_scripts.settings.names import (
    CorpusName,
    EncoderName,
    Name,
    Overrides,
    Printed,
    Refers,
    Template,
)
from workflow_scripts.settings.report import Claims, Contamination, Page, Significance
from workflow_scripts.settings.sources import Below, DatasetBlock, EncoderBlock, Sizes
from workflow_scripts.settings.suites import (
    SUITES,
    Attention,
    Clustering,
    Cost,
    Mteb,
    MtebLists,
    Search,
    Sts,
    Suite,
    Transfer,
)
from workflow_scripts.settings.training import ContinueMlm, Development, TeacherEncoding, Training


def _keys_of(kind: type[Settings]) -> AfterValidator:
    """The check of some keys of a section, by themselves: what they are merged into is checked as a whole."""

    def check(keys: dict[str, JsonValue]) -> dict[str, JsonValue]:
        if lines := read(kind, keys, "", partial=True)[1]:
            raise ValueError("\n".join(lines))
        return keys

    return AfterValidator(check)


TrainingOverrides = Annotated[Overrides, _keys_of(Training)]
DevelopmentOverrides = Annotated[Overrides, _keys_of(Development)]


class Adapt(Settings):
    """An encoder made by masked-language-model training: from another one, or from scratch."""

    base: EncoderName = Field(description="Encoder to start from.")
    corpus: CorpusName = Field(description="Corpus to train on.")
    label: Printed = Field(description="Substitution to print wherever this encoder stands in for another.")
    from_scratch: Sizes | None = Field(
        default=None,
        description="Sizes of an encoder with random weights; of the base, tokeniser and architecture are taken.",
    )
    training: TrainingOverrides = Field(
        default={}, description="Overrides of continue_mlm.training while it is made."
    )


class _Encoder(Settings):
    training: TrainingOverrides = Field(default={}, description="Overrides of training for every run on it.")


class FetchedEncoder(_Encoder):
    """A published encoder."""

    fetch: EncoderBlock


class AdaptedEncoder(_Encoder):
    """An encoder of the project's own making."""

    adapt: Adapt


class EncoderFromRuns(_Encoder):
    """Models of finished runs, taken with the seed of the run that is made from them."""

    runs: list[RunBlock] = Field(min_length=1, description="One for a teacher, several to be joined.")
    label: str | None = Field(
        description="Substitution to print wherever these stand in for others; null: none."
    )


AnyEncoder = Annotated[
    Annotated[FetchedEncoder, Tag("fetch")]
    | Annotated[AdaptedEncoder, Tag("adapt")]
    | Annotated[EncoderFromRuns, Tag("runs")],
    told_by("fetch", "adapt", "runs"),
]
AnyCorpus = Annotated[
    Annotated[RoundTripCorpus, Tag("round_trip")] | Annotated[Corpus, Tag("dataset")],
    told_by("round_trip", "dataset"),
]
WrittenColumn = Annotated[
    Annotated[TaskColumns, Tag("tasks")]
    | Annotated[MeanColumn, Tag("mean_of")]
    | Annotated[RatioColumn, Tag("ratio_of")]
    | Annotated[GainColumn, Tag("gain_of")]
    | Annotated[PathColumn, Tag("path_of")]
    | Annotated[Column, Tag("task")],
    told_by("tasks", "mean_of", "ratio_of", "gain_of", "path_of", "task"),
]
"""A column, or a block that asks for several, by the key that no other has."""


class Reading(Settings):
    """Changes to a method's block."""

    method: Overrides = Field(default={}, description="Of the method itself.")
    training: TrainingOverrides = Field(default={}, description="Of the training.")
    development: DevelopmentOverrides = Field(default={}, description="Of how checkpoints are chosen.")


class MethodKeys(Settings):
    """Keys of a block of ``methods`` beside the settings of its method: overrides of training, and readings."""

    base: Annotated[Name, Refers("methods", ("methods without a base",))] | None = Field(
        default=None, description="Block of the method underneath."
    )
    training: TrainingOverrides = Field(default={}, description="Overrides of the shared training settings.")
    development: DevelopmentOverrides = Field(
        default={}, description="Overrides of how checkpoints are chosen."
    )
    readings: dict[Name, Reading] = Field(default={}, description="Named changes to this block.")

    def conflicts(self) -> Iterator[str]:
        """A method that has another underneath names it."""
        yield from super().conflicts()
        if (self.base is None) == isinstance(self, ReductionBlock):
            yield f"base: {self.base or 'null'}; three_r has a method underneath, and no other. Correct it."


if TYPE_CHECKING:
    MethodBlock = MethodKeys
else:
    # Each a class that has the keys of its method and those of every block.
    _BLOCKS = [
        create_model(f"{method.__name__}Block", __base__=(MethodKeys, method), __doc__=method.__doc__)
        for method in (*get_args(PlainMethod), ReductionBlock)
    ]
    MethodBlock = Annotated[reduce(or_, _BLOCKS), Field(discriminator="module")]


class RunSettings(Settings):
    """The settings of one run, of which a reading and overrides may change any."""

    method: AnyMethod
    training: Training
    development: Development


class Report(Settings):
    """Figures and page."""

    page: Page
    attention_maps: AttentionMaps
    cosine_density: CosineDensity
    layer_attention: LayerAttention
    learning_curves: LearningCurves


SuiteKind = Annotated[str, Field(pattern=f"^({'|'.join(SUITES)})$")]
Evaluated = Annotated[
    dict[SuiteKind, list[Annotated[str, Refers("suites.{}")]]],
    AfterValidator(lambda suites: dict(sorted(suites.items()))),
    Field(description="Suites to evaluate on, by kind."),
]


class GridBlock(AnyGrid):
    """One grid in ``config/experiments``."""

    suites: Evaluated
    columns: list[WrittenColumn] = Field(min_length=1)
    printed_in: list[Name] = Field(
        default=[],
        description="Grids whose printed numbers are shown in cells of their run and heading; left out for its own.",
    )
    alignment_uniformity: AlignmentUniformity | None = None
    modulus_surface: ModulusSurface | None = None
    scatter: Scatter | None = None
    sweep: Sweep | None = None
    token_similarity: TokenSimilarity | None = None
    word_frequencies: WordFrequencies | None = None

    def numbered(self) -> list[tuple[int, AnyColumn]]:
        """Every column, with the number of the block in the grid's file that asks for it; one for each task."""
        return [
            (number, column)
            for number, block in enumerate(self.columns)
            for column in (block.written_out() if isinstance(block, TaskColumns) else [block])
        ]

    def conflicts(self) -> Iterator[str]:
        """Headings are there once."""
        seen: set[str] = set()
        for number, column in self.numbered():
            if column.heading in seen:
                yield f"columns.{number} ({column.heading}).heading: another column has that heading. Rename one."
            seen.add(column.heading)

    @cached_property
    def experiment(self) -> Experiment:
        """The grid as jobs read it."""
        shared = self.model_dump(include={*AnyGrid.model_fields})
        columns = [column for _, column in self.numbered()]
        return Experiment(suites={**self.suites}, columns=columns, **shared)


class Suites(Settings):
    """Suites by kind."""

    attention: dict[Name, Attention] = Field(default={})
    clustering: dict[Name, Clustering] = Field(default={})
    cost: dict[Name, Cost] = Field(default={})
    mteb: dict[Name, Mteb] = Field(default={})
    search: dict[Name, Search] = Field(default={})
    sts: dict[Name, Sts] = Field(default={})
    transfer: dict[Name, Transfer] = Field(default={})

    @property
    def by_kind(self) -> dict[str, dict[str, Suite]]:
        """Kind of suites to the suites by name."""
        return {kind: getattr(self, kind) for kind in SUITES}


class Extraction(Settings):
    """Sentence vectors without training."""

    encoder: EncoderName = Field(description="Whose states, tokeniser and static averages are used.")
    bias_list: Annotated[Name, Refers("resources.tokens")] = Field(description="File in resources/tokens.")
    suites: SuiteNames
    wikitext: Wikitext
    averages: Averages
    templates: dict[Name, Template]
    representations: dict[Name, Representation]
    weightings: dict[Name, Weighting]
    postprocessings: dict[Name, Postprocessing]
    blocks: list[Block]
    show: Show
    models: dict[str, Model]
    measures: dict[str, Measure]
    statistics: dict[Name, Statistics]
    tables: dict[Name, ExtractionTable]
    figures: dict[Name, Annotated[LayerLines | MixingMap | VariantScatter, Field(discriminator="kind")]]


class DevelopmentBlock(Development):
    """The development set."""

    dataset: Annotated[Name, Refers("datasets", ("pairs",))] | None = Field(
        description="Scored pairs; null takes held-out text of the corpus."
    )


class EvaluationBlock(Settings):
    """Resources of evaluations."""

    on_gpu: list[Literal["clustering", "mteb", "search", "sts", "transfer", "extraction"]] | None = Field(
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
            return here or kind != "sts"
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
    extraction: Extraction
    contamination: Contamination | None = Field(
        description="Overlap of corpora and evaluation sets; null to leave it out."
    )
    significance: Significance
    claims: Claims
    report: Report

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
