"""Settings of figures, what they read, and which module draws them."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.extraction.cells import Variants
from workflow_scripts.settings.names import (
    AnyDataset,
    Heading,
    Measured,
    ModelName,
    Place,
    Refers,
    Represented,
    Weighted,
)

_NOTHING: Mapping[str, str] = MappingProxyType({})
_TABLE = "<results>/tables/{experiment}.parquet"
_MODELS = "<results>/runs/{run}/seed{seed}/model/record.json"


class Needs(NamedTuple):
    """What a figure is drawn by and what it reads.

    An experiment has the figure if the block of settings is there and every input has a file.
    """

    module: str
    """Module of ``workflow_scripts.figures`` that draws it."""
    inputs: Mapping[str, str] = _NOTHING
    """Role to the path of its files: one for each ``{run}`` and ``{seed}`` of the experiment, for each ``{suite}``
    of the kind in the path before it, and for each ``{corpus}`` that its runs are trained on."""
    config: str | None = None
    """Path of the block of its settings: ``report.<name>`` is shared by all experiments, a block
    ``grids.{experiment}.<name>`` makes an experiment ask for the figure, ``extraction.figures.{figure}`` belongs to the
    extraction study, whose figures say which one they are as ``kind``."""
    trained: bool = False
    """Whether runs without training are left out."""
    method: Mapping[str, str] = _NOTHING
    """Setting of a run's method to a shell pattern of its value; runs with another value are left out."""
    runs: str | None = None
    """Path of a list of runs; others are left out."""
    task: str | None = None
    """Path of the name of a task; suites without it are left out."""

    @property
    def of_extraction(self) -> bool:
        """Whether the figure is one of the extraction study."""
        return (self.config or "").startswith("extraction.")

    @property
    def reads_models(self) -> bool:
        """Whether the job loads models, and so needs their readouts' code."""
        return _MODELS in self.inputs.values()


class FigureSettings(Settings):
    """Settings of a figure."""

    needs: ClassVar[Needs]


class Drawing(FigureSettings):
    """What every figure of the study without training says of itself."""

    title: str
    below: str = Field(description="Table of the page below which the figure is placed.")


def _of_extraction() -> Needs:
    scores = "<results>/extraction/scores/{kind}/{representation}/{task}.parquet"
    return Needs("extraction", {"scores": scores}, "extraction.figures.{figure}")


class AlignmentUniformity(FigureSettings):
    """Which measurement is drawn."""

    needs: ClassVar[Needs] = Needs(
        module="planes",
        inputs={"table": _TABLE, "scores": "<results>/scores/sts/{suite}/{run}/seed{seed}.parquet"},
        config="grids.{experiment}.alignment_uniformity",
        task="grids.{experiment}.alignment_uniformity.task",
    )

    task: Annotated[str, Refers("grid.positives")] = Field(
        description="One of the ``positives`` of the experiment's suites of scored pairs."
    )


class AttentionMaps(FigureSettings):
    """What is drawn."""

    needs: ClassVar[Needs] = Needs(
        module="maps",
        inputs={"maps": "<results>/scores/attention/{suite}/{run}/seed{seed}.maps.parquet"},
        config="report.attention_maps",
    )

    layers: list[int] = Field(min_length=1, max_length=6, description="Layers, from 1; those that a run has.")


class CosineDensity(FigureSettings):
    """Which pairs are drawn, and how."""

    needs: ClassVar[Needs] = Needs(
        module="cosine_density",
        inputs={"similarities": "<results>/scores/sts/{suite}/{run}/seed{seed}.pairs.parquet"},
        config="report.cosine_density",
        task="report.cosine_density.task",
    )

    task: AnyDataset = Field(description="Task of a suite of scored pairs.")
    edges: list[float] = Field(
        min_length=3, description="Edges of the groups, on the scale of the task's judgements."
    )
    bandwidth: float = Field(gt=0, le=0.5, description="Standard deviation of the kernel, in cosine.")

    def conflicts(self) -> Iterator[str]:
        """The edges rise."""
        if any(low >= high for low, high in pairwise(self.edges)):
            yield f"edges: {', '.join(f'{edge:g}' for edge in self.edges)} do not rise. Sort them, each once."


class LayerAttention(FigureSettings):
    """Which sentences are drawn."""

    needs: ClassVar[Needs] = Needs(
        module="inside_models",
        inputs={"models": _MODELS},
        method={"readout.kind": "layer_attention", "readout.pooling": "*attention*"},
        config="report.layer_attention",
    )

    sentences: list[str] = Field(
        min_length=1, max_length=4, description="Each on its own, so nothing is padded."
    )
    max_tokens: int = Field(gt=2, description="Longer sentences are cut; [CLS] and [SEP] count.")


class Series(Settings):
    """One line."""

    panel: str = Field(description="Column of panels it is drawn in.")
    representation: Represented
    weighting: Weighted


class LayerLines(Drawing):
    """Which lines of which measures."""

    needs: ClassVar[Needs] = _of_extraction()

    kind: Literal["layer_lines"]
    measures: list[Measured] = Field(min_length=1, description="A row of panels each.")
    series: list[Series] = Field(min_length=1)
    sums: list[str] = Field(description="Sums of layers that end the horizontal axis.")


class LearningCurves(FigureSettings):
    """How curves are drawn."""

    needs: ClassVar[Needs] = Needs(
        module="curves",
        inputs={"histories": "<results>/runs/{run}/seed{seed}/history.parquet"},
        trained=True,
        config="report.learning_curves",
    )

    loss_blocks: int = Field(gt=1, description="The loss is averaged over so many equal blocks of steps.")


class MixingMap(Drawing):
    """Which maps."""

    needs: ClassVar[Needs] = _of_extraction()

    kind: Literal["mixing_map"]
    measures: list[Measured] = Field(
        min_length=1, description="A map each; a measure of all tasks may be split."
    )
    split: bool = Field(description="Whether each task of a measure has a map of its own.")
    representation: Represented
    weighting: Weighted
    mixing_weights: list[float] = Field(min_length=2)


class ModulusSurface(FigureSettings):
    """Which part of the modulus loss is drawn (JTCSE, Fig. 3)."""

    needs: ClassVar[Needs] = Needs("modulus_surface", config="grids.{experiment}.modulus_surface")

    longest: float = Field(gt=1, description="Largest ratio k of the two moduli.")
    steps: int = Field(ge=8, le=200, description="Points along each axis.")


class Scatter(FigureSettings):
    """Two columns against each other, a point per run."""

    needs: ClassVar[Needs] = Needs("planes", {"table": _TABLE}, "grids.{experiment}.scatter")

    x: Heading = Field(description="Heading of a column.")
    y: Heading = Field(description="Heading of a column.")


class Plot(Settings):
    """A panel that shows a column over the values of one setting, swept or said by ``at``."""

    setting: Annotated[Place, Refers("grid.swept")]
    label: str = Field(description="Label of the axis, with its unit.")
    heading: Heading | None = Field(
        default=None, description="Column that is shown; left out for the headline."
    )


class Sweep(FigureSettings):
    """Which settings are drawn."""

    needs: ClassVar[Needs] = Needs("sweep", {"table": _TABLE}, "grids.{experiment}.sweep")

    plots: list[Plot] = Field(min_length=1, description="Panels, one below the other.")


class ThresholdPath(FigureSettings):
    """No settings."""

    needs: ClassVar[Needs] = Needs(
        module="curves",
        inputs={"metrics": "<results>/runs/{run}/seed{seed}/metrics.parquet"},
        method={"module": "three_r"},
    )


Unit = Literal["words", "pieces"]


class TokenSimilarity(FigureSettings):
    """Two sentences, and the runs in which their words are compared (3R, Table 4 and Figs. 1 and 3)."""

    needs: ClassVar[Needs] = Needs(
        module="inside_models",
        inputs={"models": _MODELS},
        runs="grids.{experiment}.token_similarity.runs",
        config="grids.{experiment}.token_similarity",
    )

    runs: Annotated[list[str], Refers("grid.runs")] = Field(
        min_length=1, max_length=6, description="Runs of the grid, of one encoder each."
    )
    sentences: list[str] = Field(min_length=2, max_length=2)
    layer: int = Field(description="Hidden states: -1 the last layer, 0 the embedding output.")
    unit: Unit = Field(description="Words, means of their pieces, or the pieces.")
    max_tokens: int = Field(gt=2, description="Longer sentences are cut; [CLS] and [SEP] count.")


class VariantScatter(Drawing):
    """Which measures of which cells."""

    needs: ClassVar[Needs] = _of_extraction()

    kind: Literal["variant_scatter"]
    x: Measured
    y: Measured
    models: list[ModelName] = Field(min_length=1)
    variants: list[Variants] = Field(min_length=1)
    y_scale: Literal["linear", "log"]
    note: str | None = Field(description="What readers should know of the measures.")
    correlation: bool = Field(description="Whether the legend says how x and y of a model correlate.")


class WordFrequencies(FigureSettings):
    """The most frequent words of the corpus that the grid's runs train on."""

    needs: ClassVar[Needs] = Needs(
        module="word_frequencies",
        inputs={
            "words": "<results>/corpora/{corpus}/words.parquet",
            "printed": "resources/published/three_r_table5.csv",
        },
        config="grids.{experiment}.word_frequencies",
    )

    words: int = Field(gt=1, description="Number of words that are drawn.")


FIGURES: dict[str, type[FigureSettings]] = {
    "alignment_uniformity": AlignmentUniformity,
    "attention_maps": AttentionMaps,
    "cosine_density": CosineDensity,
    "layer_attention": LayerAttention,
    "layer_lines": LayerLines,
    "learning_curves": LearningCurves,
    "mixing_map": MixingMap,
    "modulus_surface": ModulusSurface,
    "scatter": Scatter,
    "sweep": Sweep,
    "threshold_path": ThresholdPath,
    "token_similarity": TokenSimilarity,
    "variant_scatter": VariantScatter,
    "word_frequencies": WordFrequencies,
}
"""Every figure by its name."""
