"""Settings of figure token_similarity."""

from typing import Annotated, Literal

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.figures import Needs
from workflow_scripts.settings.names import Refers

Unit = Literal["words", "pieces"]
NEEDS = Needs(
    inputs={"models": "<results>/runs/{run}/seed{seed}/model/record.json"},
    runs="grids.{experiment}.token_similarity.runs",
    config="grids.{experiment}.token_similarity",
)


class Config(Settings):
    """Two sentences, and the runs in which their words are compared (3R, Table 4 and Figs. 1 and 3)."""

    runs: Annotated[list[str], Refers("grid.runs")] = Field(
        min_length=1, max_length=6, description="Runs of the grid, of one encoder each."
    )
    sentences: list[str] = Field(min_length=2, max_length=2)
    layer: int = Field(description="Hidden states: -1 the last layer, 0 the embedding output.")
    unit: Unit = Field(description="Words, means of their pieces, or the pieces.")
    max_tokens: int = Field(gt=2, description="Longer sentences are cut; [CLS] and [SEP] count.")
