"""The section ``extraction`` of the configuration, of which each rule reads its own part."""

from typing import Annotated

from pydantic import Field

from workflow_scripts.config import Slice
from workflow_scripts.extraction.averages import Averages
from workflow_scripts.extraction.blocks import Block
from workflow_scripts.extraction.postprocess import Postprocessing
from workflow_scripts.extraction.sources import Source
from workflow_scripts.extraction.weighting import Weighting
from workflow_scripts.extraction.wikitext import Wikitext
from workflow_scripts.models.templates import Template
from workflow_scripts.reporting import layer_lines, shape_scatter, share_map
from workflow_scripts.reporting.dataset_statistics import Statistics
from workflow_scripts.reporting.extraction_cells import Measure, Model
from workflow_scripts.reporting.extraction_tables import ExtractionTable

Name = Annotated[str, Field(pattern="^[a-z0-9_]+$")]
Drawing = Annotated[shape_scatter.Config | layer_lines.Config | share_map.Config, Field(discriminator="kind")]


class SuiteNames(Slice):
    """The suite of each kind; null where a study leaves a kind out."""

    sts: Name | None
    clustering: Name | None
    transfer: Name | None
    geometry: Name | None


class Show(Slice):
    """Tables and figures that a study makes."""

    statistics: list[Name]
    tables: list[Name]
    figures: list[Name]


class Extraction(Slice):
    """Sentence vectors without training."""

    encoder: Name = Field(description="Whose states, tokeniser and static averages are used.")
    bias_list: Name = Field(description="File in resources/tokens.")
    suites: SuiteNames
    wikitext: Wikitext
    averages: Averages
    shards: int = Field(gt=0, description="Jobs that the averages are cut into.")
    templates: dict[Name, Template]
    sources: dict[Name, Source]
    weightings: dict[Name, Weighting]
    postprocessings: dict[Name, Postprocessing]
    blocks: list[Block]
    show: Show
    models: dict[str, Model]
    measures: dict[str, Measure]
    statistics: dict[Name, Statistics]
    tables: dict[Name, ExtractionTable]
    figures: dict[Name, Drawing]
