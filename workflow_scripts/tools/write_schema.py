"""Write the JSON Schemas of the configuration from the classes that read it.

    python -m workflow_scripts.tools.write_schema

A test compares the files with the output of this module, so they cannot become outdated.
"""

import argparse
import functools
import importlib
import json
import operator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, GetJsonSchemaHandler, RootModel, TypeAdapter, create_model, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from workflow_scripts.config import OPERATIONAL, Settings, names_in
from workflow_scripts.errors import one_line_errors
from workflow_scripts.extraction.settings import Extraction
from workflow_scripts.graph.checks import check
from workflow_scripts.graph.evaluators import evaluators
from workflow_scripts.graph.schema import CLAIM_SCHEMA, GRID_SCHEMA, SCHEMA
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.reporting.called import Names
from workflow_scripts.reporting.claim_file import ClaimFile
from workflow_scripts.reporting.claim_file import Config as Claims
from workflow_scripts.reporting.experiment import RunBlock
from workflow_scripts.reporting.settings import Grid, Report
from workflow_scripts.settings.contamination import Config as Contamination
from workflow_scripts.settings.corpora import Corpus, RoundTripCorpus
from workflow_scripts.settings.datasets import DatasetBlock
from workflow_scripts.settings.encoders import EncoderBlock
from workflow_scripts.settings.exemplars import ExtractivePool, LlmPool
from workflow_scripts.settings.llms import LlmBlock
from workflow_scripts.settings.mlm import ContinueMlm, Sizes
from workflow_scripts.settings.names import Name
from workflow_scripts.settings.round_trips import Limits
from workflow_scripts.settings.significance import Config as Significance
from workflow_scripts.settings.suites.attention import Config as AttentionSuite
from workflow_scripts.settings.suites.cost import Config as CostSuite
from workflow_scripts.settings.suites.geometry import Config as GeometrySuite
from workflow_scripts.settings.suites.mteb import Config as MtebSuite
from workflow_scripts.settings.suites.mteb import Lists as MtebLists
from workflow_scripts.settings.suites.search import Config as SearchSuite
from workflow_scripts.settings.suites.sts import Config as StsSuite
from workflow_scripts.settings.training import Development, TeacherEncoding, Training, TrainingBlock
from workflow_scripts.settings.translators import TranslatorBlock
from workflow_scripts.settings.words import Words


class Partial(RootModel[dict[str, Any]]):
    """Keys of a shared section, each of which may be left out."""

    section: ClassVar[str]
    whole: ClassVar[type[Settings]]

    @classmethod
    def __get_pydantic_json_schema__(
        cls, _core_schema: CoreSchema, _handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The schema of the section, no key of which must be there."""
        whole = cls.whole.model_json_schema()
        return {key: value for key, value in whole.items() if key != "required"}

    @model_validator(mode="after")
    def _holds_such_keys(self) -> Self:
        check(self.root, self.model_json_schema(), f"{self.section}: ")
        return self


class PartialMlm(Partial):
    """Keys of the settings of masked-language-model training, each of which may be left out."""

    section, whole = "continue_mlm.training", Training


class Adapt(Settings):
    """An encoder made by masked-language-model training: from another one, or afresh."""

    base: Name = Field(description="Encoder to start from.")
    corpus: Name = Field(description="Corpus to train on.")
    label: str = Field(description="Substitution to print wherever this encoder stands in for another.")
    afresh: Sizes | None = Field(
        default=None,
        description="Sizes of an encoder with random weights; of the base, tokeniser and architecture are taken.",
    )
    training: PartialMlm = Field(
        default=PartialMlm({}), description="Overrides of continue_mlm.training while it is made."
    )


class PartialTraining(Partial):
    """Keys of the shared training settings, each of which may be left out."""

    section, whole = "training", TrainingBlock


class PartialDevelopment(Partial):
    """Keys of the choice of checkpoints, each of which may be left out."""

    section, whole = "development", Development


OVERRIDES = "Overrides for every run on it."


class FetchedEncoder(Settings):
    """A published encoder."""

    fetch: EncoderBlock
    training: PartialTraining = Field(default=PartialTraining({}), description=OVERRIDES)


class EncoderOfRuns(Settings):
    """Models of finished runs, taken with the seed of the run that is made from them."""

    runs: list[RunBlock] = Field(min_length=1, description="One for a teacher, several to be joined.")
    label: str | None = Field(
        description="Substitution to print wherever these stand in for others; null: none."
    )
    training: PartialTraining = Field(default=PartialTraining({}), description=OVERRIDES)


class AdaptedEncoder(Settings):
    """An encoder of the project's own making."""

    adapt: Adapt
    training: PartialTraining = Field(default=PartialTraining({}), description=OVERRIDES)


METHODS, READOUTS = "workflow_scripts.settings.methods", "workflow_scripts.settings.readouts"


def _union(blocks: list[type[Settings]], key: str) -> Any:
    """Blocks of several kinds, distinguished by the value of ``key``."""
    if len(blocks) == 1:
        return blocks[0]
    return Annotated[functools.reduce(operator.or_, blocks), Field(discriminator=key)]


AnyReadout = _union(
    [importlib.import_module(f"{READOUTS}.{kind}").Config for kind in names_in(READOUTS)],
    "kind",
)


def _method_block(module: str) -> type[Settings]:
    """A block of ``methods``: the module's settings, overrides of training, and readings."""
    config: type[Settings] = importlib.import_module(f"{METHODS}.{module}").Config
    fields = config.model_fields
    named: dict[str, Any] = {"readout": (AnyReadout, Field())} if "readout" in fields else {}
    if "base" in fields:
        named["base"] = (Name, Field(description="Block of the method underneath."))
    return create_model(
        f"Method_{module}",
        __base__=config,
        **named,
        training=(
            PartialTraining,
            Field(default=PartialTraining({}), description="Overrides of the shared training settings."),
        ),
        development=(
            PartialDevelopment,
            Field(default=PartialDevelopment({}), description="Overrides of how checkpoints are chosen."),
        ),
        readings=(dict[Name, dict[str, Any]], Field(default={}, description="Named changes to this block.")),
    )


MethodBlock: Any = _union([_method_block(module) for module in names_in(METHODS)], "module")


SUITES: dict[str, Any] = {
    "sts": StsSuite,
    "geometry": GeometrySuite,
    "search": SearchSuite,
    "cost": CostSuite,
    "attention": AttentionSuite,
    "mteb": MtebSuite,
} | {kind: importlib.import_module(f"workflow_scripts.evaluation.{kind}").Config for kind in evaluators()}
"""Kind of evaluation to the class of its suites."""

_KINDS: dict[str, Any] = {
    kind: (dict[Name, suite], Field(default={}))  # type: ignore[valid-type]
    for kind, suite in SUITES.items()
}
Suites: Any = create_model("Suites", __base__=Settings, __doc__="Suites by kind.", **_KINDS)


class DevelopmentBlock(Development):
    """The development set."""

    dataset: Name | None = Field(description="Scored pairs; null takes held-out text of the corpus.")


class EvaluationBlock(Settings):
    """What evaluations are given to compute with."""

    on_gpu: list[Name] = Field(
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
    keep_models: Literal["all", "best", "none"] = Field(
        description="Weights that stay once everything is made from them."
    )
    training: TrainingBlock
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
    exemplar_pools: list[Name] = Field(description="Pools that are made though no method may ask for them.")
    teacher: TeacherEncoding
    encoders: dict[Name, FetchedEncoder | AdaptedEncoder | EncoderOfRuns]
    datasets: dict[Name, DatasetBlock]
    methods: dict[Name, MethodBlock]
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


def schema_of(model: type[Settings]) -> dict[str, Any]:
    """The JSON Schema of ``model``, with unions resolved by their discriminating key."""
    schema = TypeAdapter(model).json_schema()
    _tell_apart(schema)
    return schema


def _tell_apart(node: object) -> None:
    """Turn ``oneOf`` with a discriminator into ``if``/``then``, so that errors name keys of the right branch."""
    if isinstance(node, list):
        for item in node:
            _tell_apart(item)
    if not isinstance(node, dict):
        return
    for item in node.values():
        _tell_apart(item)
    if "patternProperties" in node:
        node["additionalProperties"] = False  # as pydantic means it, whose schema does not say so
    if "discriminator" in node:
        key, mapping = node["discriminator"]["propertyName"], node["discriminator"]["mapping"]
        del node["discriminator"], node["oneOf"]
        node["type"] = "object"
        node["required"] = [key]
        node["properties"] = {key: {"enum": sorted(mapping)}}
        node["allOf"] = [
            {"if": {"properties": {key: {"const": value}}, "required": [key]}, "then": {"$ref": ref}}
            for value, ref in mapping.items()
        ]


def schema_texts() -> dict[Path, str]:
    """What each schema file should hold."""
    models: dict[str, type[Settings]] = {SCHEMA: Study, GRID_SCHEMA: Grid, CLAIM_SCHEMA: ClaimFile}
    return {
        ROOT / "config" / file: json.dumps(schema_of(model), indent=1, sort_keys=True) + "\n"
        for file, model in models.items()
    }


def main() -> None:
    """Write all schemas."""
    argparse.ArgumentParser(
        prog="python -m workflow_scripts.tools.write_schema", description=__doc__
    ).parse_args()
    for path, text in schema_texts().items():
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    with one_line_errors():
        main()
