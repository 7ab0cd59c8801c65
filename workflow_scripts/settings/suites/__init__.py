"""Settings of suites, a module a kind, imported by the name in the configuration."""

from collections.abc import Sequence
from typing import Self

from pydantic import Field

from workflow_scripts.config import Settings


class SuiteConfig(Settings):
    """Settings of a suite: every field is a key of its block."""

    datasets: list[str] = Field(min_length=1, description="Datasets, one task each.")
    max_tokens: int = Field(gt=2, description="Longer texts are cut; [CLS] and [SEP] count.")

    @property
    def labels(self) -> Sequence[str]:
        """Substitutions to print with the scores."""
        return ()

    def of_task(self, task: str) -> Self:
        """What decides the scores of one task: all but what is about others."""
        return self.model_copy(update={"datasets": [task]})
