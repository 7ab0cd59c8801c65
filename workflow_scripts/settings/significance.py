"""Section ``significance``."""

from collections.abc import Iterator

from pydantic import Field

from workflow_scripts.config import Settings


class Config(Settings):
    """How differences are tested."""

    alpha: float = Field(gt=0, lt=1, description="Two-sided level of significance.")
    power: float = Field(
        gt=0, lt=1, description="Probability of detecting the minimum detectable difference."
    )
    resamples: int = Field(gt=0, description="Bootstrap samples of a task's pairs.")
    seed: int = Field(ge=0, description="Seed for drawing bootstrap samples.")

    def conflicts(self) -> Iterator[str]:
        """A test detects what is there more often than what is not."""
        if self.power <= self.alpha:
            yield f"power: {self.power:g}, not above alpha {self.alpha:g}, which chance alone has. Raise it."
