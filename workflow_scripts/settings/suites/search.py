"""Suites of search."""

from typing import ClassVar, Literal

from pydantic import Field

from workflow_scripts.settings.suites import Cells, SuiteConfig, cells


class Config(SuiteConfig):
    """A suite of search tasks; label 1 of a dataset is a duplicate."""

    form: ClassVar[str] = "labelled"
    scores: ClassVar[Cells] = cells([""], ("mrr@10", "recall@1", "recall@10"))

    corpus: Literal["question2", "all"] = Field(
        description="What is searched: every question2, or every question."
    )
    max_pairs: int | None = Field(ge=1, description="Read the first so many pairs; null for all.")
