"""Settings of an ensemble."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from workflow_scripts.settings.methods import MethodConfig
from workflow_scripts.settings.start import Start


class Config(MethodConfig):
    """Settings of an ensemble."""

    starts_from: ClassVar[Literal["encoder", "pair", "runs", "run"]] = "runs"

    module: Literal["ensemble"]
    weights: tuple[float, ...] | None = Field(description="Of the runs, in their order; null: 1 each.")

    def misfits(self, start: Start) -> Iterator[str]:
        """There is a weight for each run, and vectors that are added up are of one width."""
        if self.weights is not None and start.members is not None and len(self.weights) != start.members:
            found = f"{len(self.weights)} weights; {start.encoder} consists of {start.members} runs"
            yield f"method.weights: {found}. Give one each, or null."
        if len(start.widths) > 1:
            yield f"encoder: the runs of {start.encoder} have widths {start.widths}, which cannot be added up."
