"""The section ``extraction`` of the configuration; each rule reads only a part of it."""

import functools
import operator
from typing import Annotated, Any

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.extraction.averages import Averages
from workflow_scripts.extraction.blocks import Block
from workflow_scripts.extraction.postprocess import Postprocessing
from workflow_scripts.extraction.representations import Representation
from workflow_scripts.extraction.weighting import Weighting
from workflow_scripts.extraction.wikitext import Wikitext
from workflow_scripts.figures.base import load_figure
from workflow_scripts.graph.figures import declared_figures
from workflow_scripts.reporting.dataset_statistics import Statistics
from workflow_scripts.reporting.extraction_cells import Measure, Model
from workflow_scripts.reporting.extraction_tables import ExtractionTable
from workflow_scripts.settings.templates import Template

Name = Annotated[str, Field(pattern="^[a-z0-9_]+$")]
_KINDS: list[Any] = [
    load_figure(name).Config for name, needs in declared_figures().items() if needs.of_extraction
]
Drawing: Any = Annotated[functools.reduce(operator.or_, _KINDS), Field(discriminator="kind")]


class SuiteNames(Settings):
    """The suite of each kind; null where a study leaves a kind out."""

    sts: Name | None
    clustering: Name | None
    transfer: Name | None
    geometry: Name | None


class Show(Settings):
    """Tables and figures that a study makes."""

    statistics: list[Name]
    tables: list[Name]
    figures: list[Name]


class Extraction(Settings):
    """Sentence vectors without training."""

    encoder: Name = Field(description="Whose states, tokeniser and static averages are used.")
    bias_list: Name = Field(description="File in resources/tokens.")
    suites: SuiteNames
    wikitext: Wikitext
    averages: Averages
    shards: int = Field(gt=0, description="Jobs that the averages are split into.")
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
    figures: dict[Name, Drawing]
