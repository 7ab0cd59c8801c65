"""Settings of figure cosine_density."""

from collections.abc import Iterator
from itertools import pairwise

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.figures import Needs
from workflow_scripts.settings.names import AnyDataset

NEEDS = Needs(
    inputs={"similarities": "<results>/scores/sts/{suite}/{run}/seed{seed}.pairs.parquet"},
    config="report.cosine_density",
    task="report.cosine_density.task",
)


class Config(Settings):
    """Which pairs are drawn, and how."""

    task: AnyDataset = Field(description="Task of a suite of scored pairs.")
    edges: list[float] = Field(
        min_length=3, description="Edges of the groups, on the scale of the task's judgements."
    )
    bandwidth: float = Field(gt=0, le=0.5, description="Standard deviation of the kernel, in cosine.")

    def conflicts(self) -> Iterator[str]:
        """The edges rise."""
        if any(low >= high for low, high in pairwise(self.edges)):
            yield f"edges: {', '.join(f'{edge:g}' for edge in self.edges)} do not rise. Sort them, each once."
