"""Suites of search."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.suites import Cells, SuiteConfig, cells


class InvertedIndex(Settings):
    """An inverted index of FAISS, which searches some of its lists and may miss the nearest texts."""

    nlist: int = Field(
        ge=1, description="Lists that the texts are divided into, by k-means with a fixed seed."
    )
    nprobe: int = Field(ge=1, description="Lists that a query is compared with.")

    def conflicts(self) -> Iterator[str]:
        """More lists are probed than there are."""
        if self.nprobe > self.nlist:
            yield f"nprobe: {self.nprobe} of {self.nlist} lists. Lower nprobe."


class Config(SuiteConfig):
    """A suite of search tasks; label 1 of a dataset is a duplicate."""

    form: ClassVar[str] = "labelled"
    scores: ClassVar[Cells] = cells([""], ("mrr@10", "recall@1", "recall@10"))

    corpus: Literal["question2", "all"] = Field(
        description="What is searched: every question2, or every question."
    )
    max_pairs: int | None = Field(ge=1, description="Read the first so many pairs; null for all.")
    index: InvertedIndex | None = Field(
        default=None, description="Inverted index to search; null compares a query with every text."
    )

    def conflicts(self) -> Iterator[str]:
        """The pairs that are read cannot have as many texts as the index has lists."""
        yield from super().conflicts()
        most = self.max_pairs and self.max_pairs * (2 if self.corpus == "all" else 1)
        if self.index and most and most < self.index.nlist:
            yield f"index.nlist: {self.index.nlist} lists for at most {most} texts. Lower nlist, or raise max_pairs."

    def written(self, _lists: Mapping[str, Mapping[str, Any]]) -> dict[str, Cells]:
        """The quality of each task's hits, and the size of an inverted index."""
        size = cells([""], ["index_bytes"] if self.index else [])
        return dict.fromkeys(self.datasets, self.scores | size)

    def timed(self) -> dict[str, Cells]:
        """The time of a query."""
        return dict.fromkeys(self.datasets, cells([""], ["retrieval_ms"]))
