"""Write the JSON Schemas of the configuration from the classes that read it: python -m workflow_scripts.write_schema.

A test compares the files with what this writes, so they cannot fall behind.
"""

import copy
import functools
import importlib
import json
import operator
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, create_model

from workflow_scripts.apis.llm import LlmBlock
from workflow_scripts.apis.translators import TranslatorBlock
from workflow_scripts.closure import PACKAGE, ROOT
from workflow_scripts.config import Slice
from workflow_scripts.config_check import GRID_SCHEMA, SCHEMA
from workflow_scripts.data.contamination import Config as Contamination
from workflow_scripts.data.corpora import Corpus, RoundTripCorpus
from workflow_scripts.data.encoders import EncoderBlock
from workflow_scripts.data.exemplars import ExtractivePool, LlmPool
from workflow_scripts.data.round_trips import Limits
from workflow_scripts.data.sources import Dataset
from workflow_scripts.data.words import Words
from workflow_scripts.encode_teacher import Teacher
from workflow_scripts.evaluation.attention import Config as AttentionSuite
from workflow_scripts.evaluation.clustering import Config as ClusteringSuite
from workflow_scripts.evaluation.cost import Config as CostSuite
from workflow_scripts.evaluation.geometry import Config as GeometrySuite
from workflow_scripts.evaluation.mteb_tasks import Config as MtebSuite
from workflow_scripts.evaluation.mteb_tasks import Lists as MtebLists
from workflow_scripts.evaluation.search import Config as SearchSuite
from workflow_scripts.evaluation.significance import Config as Significance
from workflow_scripts.evaluation.sts import Config as StsSuite
from workflow_scripts.evaluation.transfer import Config as TransferSuite
from workflow_scripts.extraction.settings import Extraction
from workflow_scripts.methods import load_method
from workflow_scripts.reporting.experiment import Experiment, Name, RunBlock
from workflow_scripts.reporting.settings import Report
from workflow_scripts.training.mlm import ContinueMlm
from workflow_scripts.training.settings import Development, Training


class Adapt(Slice):
    """An encoder made from another one by continued masked-language-model training."""

    base: Name = Field(description="Encoder to start from.")
    corpus: Name = Field(description="Corpus to train on.")
    label: str = Field(description="Substitution to print wherever this encoder stands in for another.")


def _partial(whole: type[Slice]) -> type[Slice]:
    """A class whose keys are those of ``whole``, each of which may be left out."""
    fields: dict[str, Any] = {}
    for name, field in whole.model_fields.items():
        optional = copy.copy(field)
        optional.default = None
        fields[name] = (field.annotation, optional)
    return create_model(f"Partial{whole.__name__}", __base__=Slice, **fields)


PartialTraining = _partial(Training)


class FetchedEncoder(Slice):
    """A published encoder."""

    fetch: EncoderBlock
    training: PartialTraining = Field(default=None, description="Overrides for every run on it.")  # type: ignore[valid-type]


class EncoderOfRuns(Slice):
    """Models of finished runs, each by the seed of the run that is made from them."""

    runs: list[RunBlock] = Field(min_length=1, description="One for a teacher, several to be joined.")
    label: str | None = Field(
        description="Substitution to print wherever these stand in for others; null: none."
    )
    training: PartialTraining = Field(default=None, description="Overrides for every run on it.")  # type: ignore[valid-type]


class AdaptedEncoder(Slice):
    """An encoder of the project's own making."""

    adapt: Adapt
    training: PartialTraining = Field(default=None, description="Overrides for every run on it.")  # type: ignore[valid-type]


def _union(blocks: list[type[Slice]], key: str) -> Any:
    """Blocks told apart by the value of ``key``."""
    if len(blocks) == 1:
        return blocks[0]
    return Annotated[functools.reduce(operator.or_, blocks), Field(discriminator=key)]


READOUTS = sorted(path.stem for path in (PACKAGE / "models/readouts").glob("[a-z]*.py"))
AnyReadout = _union(
    [importlib.import_module(f"workflow_scripts.models.readouts.{kind}").Config for kind in READOUTS], "kind"
)


def _method_block(module: str) -> type[Slice]:
    """A block of ``methods``: what the module reads, and overrides of training and readings."""
    config: type[Slice] = load_method(module).Config
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
            Field(default=None, description="Overrides of the shared training settings."),
        ),
        readings=(dict[Name, dict[str, Any]], Field(default={}, description="Named changes to this block.")),
    )


METHODS = sorted(path.stem for path in (PACKAGE / "methods").glob("[a-z]*.py"))
MethodBlock: Any = _union([_method_block(module) for module in METHODS], "module")


class Suites(Slice):
    """Suites by kind."""

    sts: dict[Name, StsSuite] = Field(default={})
    geometry: dict[Name, GeometrySuite] = Field(default={})
    clustering: dict[Name, ClusteringSuite] = Field(default={})
    search: dict[Name, SearchSuite] = Field(default={})
    transfer: dict[Name, TransferSuite] = Field(default={})
    cost: dict[Name, CostSuite] = Field(default={})
    attention: dict[Name, AttentionSuite] = Field(default={})
    mteb: dict[Name, MtebSuite] = Field(default={})


class DevelopmentBlock(Development):
    """The development set."""

    dataset: Name | None = Field(description="Scored pairs; null takes held-out text of the corpus.")


class Study(Slice):
    """The whole configuration."""

    name: Name = Field(description="Folder below results, logs and benchmarks.")
    data_root: str | None = Field(description="Folder of local data sets; null takes SEMBLANCE_DATA.")
    experiments: list[Name] = Field(min_length=1, description="Grids in config/experiments.")
    training: Training
    development: DevelopmentBlock
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
    teacher: Teacher
    encoders: dict[Name, FetchedEncoder | AdaptedEncoder | EncoderOfRuns]
    datasets: dict[Name, Dataset]
    methods: dict[Name, MethodBlock]
    suites: Suites
    mteb: MtebLists
    extraction: Extraction
    contamination: Contamination | None = Field(
        description="Overlap of corpora and evaluation sets; null to leave it out."
    )
    significance: Significance
    report: Report


def schema_of(model: type[Slice]) -> dict[str, Any]:
    """The JSON Schema of ``model``, unions told apart by the key that tells them apart."""
    schema = TypeAdapter(model).json_schema()
    _tell_apart(schema)
    return schema


def _tell_apart(node: object) -> None:
    """Turn ``oneOf`` with a discriminator into ``if``/``then``, so that an error names the right branch's key."""
    if isinstance(node, list):
        for item in node:
            _tell_apart(item)
    if not isinstance(node, dict):
        return
    for item in node.values():
        _tell_apart(item)
    if "discriminator" in node:
        key, mapping = node["discriminator"]["propertyName"], node["discriminator"]["mapping"]
        del node["discriminator"], node["oneOf"]
        node["type"] = "object"
        node["required"] = [key]
        node["properties"] = {key: {"enum": sorted(mapping)}}
        node["allOf"] = [
            {"if": {"properties": {key: {"const": value}}}, "then": {"$ref": ref}}
            for value, ref in mapping.items()
        ]


def main() -> None:
    """Write both schemas."""
    models: dict[str, type[Slice]] = {SCHEMA: Study, GRID_SCHEMA: Experiment}
    for file, model in models.items():
        path = ROOT / "config" / file
        path.write_text(json.dumps(schema_of(model), indent=1, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    main()
