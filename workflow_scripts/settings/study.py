"""The whole configuration, and the grids that it asks for; the graph reads it, and no job does."""

import importlib
from functools import cache
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, SerializeAsAny, create_model
from pydantic.fields import FieldInfo

from workflow_scripts.config import OPERATIONAL, Settings, names_in
from workflow_scripts.figures.base import all_figures
from workflow_scripts.figures.style import FigureStyle
from workflow_scripts.settings.called import Names
from workflow_scripts.settings.claims import Config as Claims
from workflow_scripts.settings.contamination import Config as Contamination
from workflow_scripts.settings.corpora import Corpus, RoundTripCorpus
from workflow_scripts.settings.datasets import DatasetBlock
from workflow_scripts.settings.encoders import EncoderBlock
from workflow_scripts.settings.exemplars import ExtractivePool, LlmPool
from workflow_scripts.settings.experiment import AnyColumn, Experiment, RunBlock, TaskColumns
from workflow_scripts.settings.extraction.study import Extraction
from workflow_scripts.settings.llms import LlmBlock
from workflow_scripts.settings.methods import MethodConfig
from workflow_scripts.settings.mlm import ContinueMlm, Sizes
from workflow_scripts.settings.names import CorpusName, EncoderName, Name, Refers
from workflow_scripts.settings.page import Config as Page
from workflow_scripts.settings.round_trips import Limits
from workflow_scripts.settings.significance import Config as Significance
from workflow_scripts.settings.suites import Suite, SuiteConfig
from workflow_scripts.settings.suites.mteb import Lists as MtebLists
from workflow_scripts.settings.training import Development, TeacherEncoding, Training
from workflow_scripts.settings.translators import TranslatorBlock
from workflow_scripts.settings.words import Words


def some_of(whole: type[Settings]) -> Any:
    """A class of blocks with any keys of ``whole``, which take the values that they take there."""
    fields: dict[str, Any] = {
        name: (field.annotation, FieldInfo.merge_field_infos(field, default=None))
        for name, field in whole.model_fields.items()
    }
    return create_model(f"Some{whole.__name__}", __base__=Settings, __doc__=whole.__doc__, **fields)


SomeTraining: Any = some_of(Training)
SomeDevelopment: Any = some_of(Development)


class Adapt(Settings):
    """An encoder made by masked-language-model training: from another one, or from scratch."""

    base: EncoderName = Field(description="Encoder to start from.")
    corpus: CorpusName = Field(description="Corpus to train on.")
    label: str = Field(description="Substitution to print wherever this encoder stands in for another.")
    from_scratch: Sizes | None = Field(
        default=None,
        description="Sizes of an encoder with random weights; of the base, tokeniser and architecture are taken.",
    )
    training: SomeTraining = Field(
        default={}, description="Overrides of continue_mlm.training while it is made."
    )


class _Encoder(Settings):
    training: SomeTraining = Field(default={}, description="Overrides for every run on it.")


class FetchedEncoder(_Encoder):
    """A published encoder."""

    fetch: EncoderBlock


class EncoderOfRuns(_Encoder):
    """Models of finished runs, taken with the seed of the run that is made from them."""

    runs: list[RunBlock] = Field(min_length=1, description="One for a teacher, several to be joined.")
    label: str | None = Field(
        description="Substitution to print wherever these stand in for others; null: none."
    )


class AdaptedEncoder(_Encoder):
    """An encoder of the project's own making."""

    adapt: Adapt


class MethodBlock(Settings):
    """A block of ``methods``: settings of its module, overrides of training, and readings."""

    training: SomeTraining = Field(default={}, description="Overrides of the shared training settings.")
    development: SomeDevelopment = Field(default={}, description="Overrides of how checkpoints are chosen.")
    readings: dict[Name, dict[str, Any]] = Field(default={}, description="Named changes to this block.")

    @classmethod
    def class_of(cls, section: Any) -> type[Self]:
        """The class of the module that ``section`` names, as a block."""
        return _block(MethodConfig.class_of(section)) if isinstance(section, dict) else cls


@cache
def _block(method: type[MethodConfig]) -> Any:
    base: Any = {
        "base": (
            Annotated[Name, Refers("methods", ("methods without a base",))],
            Field(description="Block of the method underneath."),
        )
    }
    named = base if "base" in method.model_fields else {}
    return create_model(f"{method.__module__}.Block", __base__=(MethodBlock, method), **named)


class RunSettings(Settings):
    """The settings of one run, of which a reading and overrides may change any."""

    method: Annotated[MethodConfig, BeforeValidator(MethodConfig.strictly)]
    training: Training
    development: Development


def _figures_at(section: str) -> dict[str, Any]:
    """Blocks of figures in a section of the configuration: key to what the figure reads there."""
    blocks = {figure.block: figure.settings for figure in all_figures().values() if figure.block}
    return {path.removeprefix(section): block for path, block in blocks.items() if path.startswith(section)}


_SHARED: dict[str, Any] = {key: (block, ...) for key, block in _figures_at("report.").items()}
Report: Any = create_model(
    "Report",
    __base__=Settings,
    __doc__="Figures and page.",
    figure=(FigureStyle, ...),
    page=(Page, ...),
    **_SHARED,
)


_PACKAGE = "workflow_scripts.settings.suites"
SUITES: dict[str, type[Suite]] = {
    kind: importlib.import_module(f"{_PACKAGE}.{kind}").Config for kind in names_in(_PACKAGE)
}
"""Kinds of suites, with their classes."""
EVALUATORS = [kind for kind, suite in SUITES.items() if issubclass(suite, SuiteConfig)]
"""Kinds of suites that score vectors (``evaluation.base``)."""
_NAMED: dict[str, Any] = {
    kind: (Annotated[list[str], Refers(f"suites.{kind}")], Field(default=[])) for kind in SUITES
}
Evaluated: Any = create_model("Evaluated", __base__=Settings, __doc__="Suites to evaluate on.", **_NAMED)


class _File(Experiment):
    """A grid as it is written."""

    suites: Evaluated  # type: ignore[assignment]
    columns: list[AnyColumn | TaskColumns] = Field(min_length=1)  # type: ignore[assignment]

    def numbered(self) -> list[tuple[int, AnyColumn]]:
        """Every column, with the number of the block in the grid's file that asks for it."""
        return [
            (number, column)
            for number, block in enumerate(self.columns)
            for column in (block.written_out() if isinstance(block, TaskColumns) else [block])
        ]


_ASKED: dict[str, Any] = {
    key: (block | None, None) for key, block in _figures_at("grids.{experiment}.").items()
}
Grid: Any = create_model(
    "Grid",
    __base__=_File,
    __doc__="One grid in ``config/experiments``.",
    **_ASKED,
)


_SUITES: Any = {kind: (dict[Name, suite], Field(default={})) for kind, suite in SUITES.items()}  # type: ignore[valid-type]
Suites: Any = create_model("Suites", __base__=Settings, __doc__="Suites by kind.", **_SUITES)


class DevelopmentBlock(Development):
    """The development set."""

    dataset: Annotated[Name, Refers("datasets", ("pairs",))] | None = Field(
        description="Scored pairs; null takes held-out text of the corpus."
    )


_ON_GPU: Any = Literal[(*(kind for kind, suite in SUITES.items() if suite.on_gpu), "extraction")]


class EvaluationBlock(Settings):
    """What evaluations are given to compute with."""

    on_gpu: list[_ON_GPU] = Field(
        description="Kinds of suites whose jobs ask for a GPU each and encode there; extraction: that study.",
        json_schema_extra=OPERATIONAL,
    )


class Study(Settings):
    """The whole configuration."""

    name: Name = Field(description="Folder below results, logs and benchmarks.")
    data_root: str | None = Field(description="Folder of local data sets; null takes SEMBLANCE_DATA.")
    unreachable: Literal["stop", "gap"] = Field(
        description="What an optional dataset is that is on the Hub alone, while the Hub does not answer."
    )
    broken: Literal["stop", "gap"] = Field(
        description="What an optional dataset is whose files or rows are not those that the configuration promises."
    )
    experiments: list[Name] = Field(
        min_length=1, description="Grids in config/experiments; extraction: the extraction study."
    )
    keep_models: Literal["all", "none"] = Field(
        description="Weights that stay once everything is made from them."
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
    corpora: dict[Name, Corpus | RoundTripCorpus]
    words: Words
    answers: str = Field(description="File in which answers of translators and language models are kept.")
    offline: bool = Field(description="Ask no translator or language model: kept answers alone.")
    translators: dict[Name, TranslatorBlock]
    llms: dict[Name, LlmBlock]
    round_trip: Limits
    exemplars: dict[Name, Annotated[LlmPool | ExtractivePool, Field(discriminator="generator")]]
    exemplar_pools: list[Annotated[Name, Refers("exemplars")]] = Field(
        description="Pools that are made though no method may ask for them."
    )
    teacher: TeacherEncoding
    encoders: dict[Name, FetchedEncoder | AdaptedEncoder | EncoderOfRuns]
    datasets: dict[Name, DatasetBlock]
    methods: dict[Name, Annotated[SerializeAsAny[MethodBlock], BeforeValidator(MethodBlock.strictly)]]
    suites: Suites
    mteb: MtebLists
    extraction: Extraction
    contamination: Contamination | None = Field(
        description="Overlap of corpora and evaluation sets; null to leave it out."
    )
    significance: Significance
    names: Names
    claims: Claims
    report: Report
