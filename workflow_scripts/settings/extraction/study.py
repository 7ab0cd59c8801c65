"""Section ``extraction``: sentence vectors without training."""

import functools
import operator
from typing import Annotated, Any, Literal

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.figures.base import all_figures
from workflow_scripts.settings.extraction.averages import Averages
from workflow_scripts.settings.extraction.cells import Measure, Model
from workflow_scripts.settings.extraction.statistics import Statistics
from workflow_scripts.settings.extraction.tables import ExtractionTable
from workflow_scripts.settings.extraction.vectors import Postprocessing, Representation, Weighting
from workflow_scripts.settings.extraction.wikitext import Wikitext
from workflow_scripts.settings.names import (
    EncoderName,
    Name,
    Postprocessed,
    Refers,
    Represented,
    Weighted,
)
from workflow_scripts.settings.templates import Template

_DRAWINGS: list[Any] = [figure.settings for figure in all_figures().values() if figure.of_extraction]
AnyDrawing: Any = Annotated[
    functools.reduce(operator.or_, _DRAWINGS),
    Field(discriminator="kind"),
]


class Block(Settings):
    """Every combination of the lists, scored by some kinds of evaluation."""

    kinds: list[Literal["sts", "clustering", "transfer", "geometry", "isotropy"]] = Field(
        min_length=1, description="isotropy is the IsoScore of Wikitext's sentences."
    )
    representations: list[Represented] = Field(min_length=1)
    mixing_weights: list[float] = Field(
        min_length=1, description="w of Equation 10: 0 for contextual states alone, 1 for static averages."
    )
    layers: list[str] = Field(
        min_length=1, description="static, 0, 1, ..., last, sums such as 1+last; each: all."
    )
    weightings: list[Weighted] = Field(min_length=1)
    postprocessings: list[Postprocessed] = Field(min_length=1)


class SuiteNames(Settings):
    """The suite of each kind; null where a study leaves a kind out. Geometry is measured by that of scored pairs."""

    sts: Annotated[Name, Refers("suites.sts")] | None
    clustering: Annotated[Name, Refers("suites.clustering")] | None
    transfer: Annotated[Name, Refers("suites.transfer")] | None


class Show(Settings):
    """Tables and figures that a study makes."""

    statistics: list[Annotated[Name, Refers("extraction.statistics")]]
    tables: list[Annotated[Name, Refers("extraction.tables")]]
    figures: list[Annotated[Name, Refers("extraction.figures")]]


class Extraction(Settings):
    """Sentence vectors without training."""

    encoder: EncoderName = Field(description="Whose states, tokeniser and static averages are used.")
    bias_list: Name = Field(description="File in resources/tokens.")
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
    figures: dict[Name, AnyDrawing]
