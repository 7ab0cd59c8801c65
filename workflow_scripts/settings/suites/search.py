"""Suites of search."""

from typing import ClassVar, Literal, Self

from pydantic import Field

from workflow_scripts.settings.readouts.pooling import Config as Pooling
from workflow_scripts.settings.suites import Cells, Suite, cells


class Config(Suite):
    """A suite of search tasks."""

    form: ClassVar[str] = "labelled"
    scores: ClassVar[Cells] = cells(("flat", "ivf"), ("mrr@10", "recall@1", "recall@10", "index_bytes"))

    datasets: list[str] = Field(
        min_length=1, description="Datasets of the form labelled: label 1 for a duplicate."
    )
    max_tokens: int = Field(
        gt=2, description="Longer texts are truncated to this many tokens, including [CLS] and [SEP]."
    )
    corpus: Literal["question2", "all"] = Field(
        description="What is searched: every question2, or every question."
    )
    max_pairs: int | None = Field(ge=1, description="Read the first so many pairs; null for all.")
    nlist: int = Field(ge=1, description="Lists of the inverted file.")
    nprobe: int = Field(ge=1, description="Lists that a search probes.")
    readout: Pooling | None = Field(
        description="Readout to use with every run's backbone, without its own readout and head; null for its own."
    )

    def of_task(self, task: str) -> Self:
        """What decides the scores of one task: all but the list of others."""
        return self.model_copy(update={"datasets": [task]})

    def timed(self) -> dict[str, Cells]:
        """Each search is."""
        return dict.fromkeys(self.datasets, cells(("flat", "ivf"), ("retrieval_ms",)))
