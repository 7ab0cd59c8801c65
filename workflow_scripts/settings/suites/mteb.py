"""Suites of mteb's tasks."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.names import Refers
from workflow_scripts.settings.suites import Cells, Suite, cells


class Lists(Settings):
    """Content of config/mteb.yaml."""

    lists: dict[str, dict[str, str]] = Field(
        description="Lists by name; each maps names of tasks in a paper to their names in mteb."
    )
    not_in_this_mteb: dict[str, str] = Field(description="Tasks of papers that the lists lack, and why.")


class Selection(Suite):
    """A benchmark of mteb, or a part of it."""

    benchmark: str | None = Field(default=None, description="Its name in mteb, such as MTEB(eng, v2).")
    task_types: list[str] | None = Field(
        default=None, min_length=1, description="Types of tasks, such as STS; null for all."
    )
    tasks: list[str] | None = Field(
        default=None, min_length=1, description="Names of tasks in mteb; null for all."
    )
    languages: list[str] | None = Field(
        default=None,
        min_length=1,
        description="ISO 639-3, such as eng: texts in others are left out; null for all.",
    )


class Config(Selection):
    """One evaluation through mteb."""

    lists: list[Annotated[str, Refers("mteb.lists")]] | None = Field(
        default=None, min_length=1, description="Lists of config/mteb.yaml, where no benchmark is named."
    )
    max_tokens: int = Field(gt=2, description="Longer texts are truncated; [CLS] and [SEP] count.")
    batch_size: int = Field(gt=0, description="Texts per forward pass.")
    device: Literal["cpu", "cuda", "auto"]
    metrics: list[str] = Field(
        description="Metrics to keep in addition to main_score, if a task has them, such as map_at_10."
    )
    missing_data: Literal["gap", "stop"] = Field(description="What to do if a task's dataset is unavailable.")
    label: str | None = Field(
        default=None, description="Substitution to print, where other tasks stand in for those of a paper."
    )

    def conflicts(self) -> Iterator[str]:
        """Tasks come from lists or from a benchmark, not from both."""
        if bool(self.lists) == bool(self.benchmark):
            yield f"benchmark: {self.benchmark} with lists {self.lists}. Give one of them."
        if self.lists and (self.task_types or self.tasks or self.languages):
            yield "lists: what they hold is chosen there. Leave out task_types, tasks and languages."

    @property
    def means(self) -> list[str]:
        """Metrics whose means over lists of tasks are written."""
        return list(dict.fromkeys([*(["main_score"] if self.benchmark else []), *self.metrics]))

    def written(self, lists: Mapping[str, Mapping[str, Any]]) -> dict[str, Cells]:
        """Splits and subsets of each task, and means over each list; a benchmark's ``lists`` are its own alone."""
        parts = cells(["*:*"], ("main_score", *self.metrics)) | {("mean", "main_score")}
        chosen = self.lists or lists
        tasks = [task for name in chosen for task in lists[name].values()]
        means = dict.fromkeys(chosen, cells(["mean"], self.means))
        if self.benchmark:
            means[self.benchmark] |= {("mean_of_types", "main_score")}
        return dict.fromkeys(tasks, parts) | means
