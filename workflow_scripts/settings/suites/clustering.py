"""Suites of clustering."""

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
