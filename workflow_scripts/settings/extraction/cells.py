"""What cells of the study's tables are."""

from typing import Literal

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.names import Postprocessed, Represented, Weighted


class Model(Settings):
    """One column of the paper's tables."""

    representation: Represented
    mixing_weight: float = Field(description="w of Equation 10.")
    layers: str
    name: str | None = Field(
        default=None, description="What readers see; {encoder} is the study's. Left out: the paper's name."
    )


class Measure(Settings):
    """A score, averaged over tasks."""

    kind: Literal["sts", "clustering", "transfer", "geometry", "isotropy"]
    tasks: list[str] | None = Field(description="null for all tasks that the study scores of the kind.")
    aggregation: str
    metrics: list[str] = Field(min_length=1, description="The first one that a task has.")
    scale: float = Field(gt=0)
    paper_tasks: int | None = Field(
        description="Tasks that the paper averages; a study with fewer is compared with the mean of the same ones."
    )


class Variants(Settings):
    """Every combination of some weightings and post-processings."""

    weightings: list[Weighted] = Field(min_length=1)
    postprocessings: list[Postprocessed] = Field(min_length=1)


class Names(Settings):
    """Definitions and labels behind the rows and columns of tables."""

    models: dict[str, Model]
    measures: dict[str, Measure]
    weightings: dict[str, str]
    postprocessings: dict[str, str]
    encoder: str = Field(description="What the study's encoder is called.")
    representations: dict[str, str] = Field(default={}, description="Representation to what readers see.")
    datasets: dict[str, str] = Field(default={}, description="Task to what its data is called.")

    def model(self, name: str) -> str:
        """What readers see in place of the paper's name of a model, which may be that of another encoder."""
        return (self.models[name].name or name).format(encoder=self.encoder)
