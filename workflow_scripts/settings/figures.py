"""Settings of grids' figures: a class for each figure, and the blocks that contain them."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field

from workflow_scripts.errors import ErrorDetails
from workflow_scripts.settings.base import Settings
from workflow_scripts.settings.names import AnyDataset, Heading, MaxTokens, Place, Refers


class ModulusSurface(Settings):
    """Settings of the surface of the modulus term (JTCSE, Fig. 3)."""

    longest: float = Field(gt=1, description="Maximum ratio k of the two moduli.")
    steps: int = Field(ge=8, le=200, description="Points along each axis.")


class AttentionMaps(Settings):
    """Settings of the attention maps."""

    layers: Annotated[list[int], Field(min_length=1)] | Literal["all"] = Field(
        description="Layers, counted from 1; layers that a run lacks are skipped. all: every layer of its suite."
    )


class LayerAttentionMaps(Settings):
    """Settings of the maps of attention over layers (LayerAttPooler)."""

    sentences: list[str] = Field(
        min_length=1,
        max_length=4,
        description="Sentences to draw, each encoded without padding.",
    )
    max_tokens: MaxTokens


class TokenSimilarity(Settings):
    """Settings of the maps of cosines between words (3R, Table 4 and Figs. 1 and 3)."""

    runs: Annotated[list[str], Refers("grid.runs")] = Field(
        min_length=1, max_length=6, description="Runs of the grid, each a single encoder."
    )
    sentences: list[str] = Field(min_length=2, max_length=2)
    max_tokens: MaxTokens


class Plot(Settings):
    """A panel: a column's scores over the values of one setting, swept or given by ``values``."""

    setting: Annotated[Place, Refers("grid.swept")]
    label: str = Field(description="Label of the axis, with its unit.")
    heading: Heading | None = Field(default=None, description="Column of the table; by default the headline.")


class Sweep(Settings):
    """Settings of the figure of a sweep: its panels."""

    plots: list[Plot] = Field(min_length=1, description="Panels, one below the other.")


class Scatter(Settings):
    """Settings of the scatter plot: two columns of a table."""

    x: Heading = Field(description="Heading of a column.")
    y: Heading = Field(description="Heading of a column.")


class AlignmentUniformity(Settings):
    """Settings of the plot of alignment against uniformity: the task that measures both."""

    task: Annotated[str, Refers("grid.positives")] = Field(
        description="One of the ``positives`` of the experiment's suites of scored pairs."
    )


class LearningCurves(Settings):
    """Settings of the learning curves."""

    loss_blocks: int = Field(
        gt=1, description="Number of equal blocks of steps; the loss is averaged over each."
    )


class WordFrequencies(Settings):
    """Settings of the word frequencies."""

    words: int = Field(gt=1, description="Number of words to draw, the most frequent first.")


class CosineDensity(Settings):
    """Settings of the density plot of cosines: a task, and the groups of its pairs."""

    task: AnyDataset = Field(description="Task of a suite of scored pairs.")
    edges: list[float] = Field(
        min_length=3, description="Edges of the groups, on the scale of the task's judgements."
    )
    bandwidth: float = Field(gt=0, le=0.5, description="Standard deviation of the kernel, in cosine.")

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Yield an error unless the edges increase."""
        if any(low >= high for low, high in pairwise(self.edges)):
            yield ErrorDetails(
                "edges",
                f"{', '.join(f'{edge:g}' for edge in self.edges)} do not increase",
                "Sort them, without repeats.",
            )


class GridFigures(Settings):
    """Figures that a grid draws if it has their settings."""

    alignment_uniformity: AlignmentUniformity | None = None
    modulus_surface: ModulusSurface | None = None
    scatter: Scatter | None = None
    sweep: Sweep | None = None
    token_similarity: TokenSimilarity | None = None
    word_frequencies: WordFrequencies | None = None


class SharedFigures(Settings):
    """Figures that every grid draws if its runs have the data; all grids share their settings."""

    attention_maps: AttentionMaps
    cosine_density: CosineDensity
    layer_attention: LayerAttentionMaps
    learning_curves: LearningCurves
