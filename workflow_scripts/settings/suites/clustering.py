"""Suites of clustering."""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field

from workflow_scripts.settings.suites import Cells, SuiteConfig, cells


class Config(SuiteConfig):
    """A suite of clustering tasks."""

    form: ClassVar[str] = "labelled"
    scores: ClassVar[Cells] = cells(("mean", "sd"), ("accuracy", "nmi", "v_measure"))

    seeds: int = Field(ge=2, description="Runs of k-means, with seeds 0, 1, ...")
    n_init: int = Field(ge=1, description="Starts of each run, of which the best is used.")
    max_texts: int | None = Field(
        default=None,
        gt=0,
        description="Number of texts drawn from a larger set, the same for all runs; omit for all texts.",
    )
    label: str | None = Field(
        description="Substitution to print, where fewer runs or texts stand in for a paper's."
    )

    @property
    def labels(self) -> Sequence[str]:
        """That of the settings, if there is one."""
        return [self.label] if self.label else []
