"""Suites of mteb's tasks."""

from collections.abc import Mapping
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


class Config(Suite):
    """One evaluation through mteb."""

    lists: list[Annotated[str, Refers("mteb.lists")]] = Field(
        min_length=1, description="Lists of config/mteb.yaml."
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

    def written(self, lists: Mapping[str, Mapping[str, Any]]) -> dict[str, Cells]:
        """Splits and subsets of each task, and means over each list."""
        parts = cells(["*:*"], ("main_score", *self.metrics)) | {("mean", "main_score")}
        tasks = [task for name in self.lists for task in lists[name].values()]
        return dict.fromkeys(tasks, parts) | dict.fromkeys(self.lists, cells(["mean"], self.metrics))
