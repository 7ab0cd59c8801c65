"""Suites of transfer."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from workflow_scripts.settings.suites import Cells, SuiteConfig, cells


class Config(SuiteConfig):
    """A suite of transfer tasks."""

    form: ClassVar[str] = "labelled"
    scores: ClassVar[Cells] = cells(
        [""], ("accuracy", "dev_accuracy", "f1")
    )  # f1 of two classes of pairs alone
    of_grades: ClassVar[Cells] = cells([""], ("spearman", "pearson", "dev_pearson"))

    graded: list[str] = Field(description="Those datasets whose labels are scores.")
    grades: tuple[int, int] = Field(description="First and last class of a graded task; SentEval 1 and 5.")
    classifier: Literal["exact", "senteval", "senteval_fast"]
    folds: int = Field(ge=2, description="Folds of every cross-validation; SentEval 10, its fast form 5.")
    seed: int = Field(ge=0, description="Seed of folds, batches and initial weights; SentEval 1111.")
    standardise: bool = Field(
        description="Whether features get mean 0 and sd 1, over all but a test split's rows; SentEval no."
    )

    def of_task(self, task: str) -> Self:
        """What decides the scores of one task; of the graded ones, whether it is among them."""
        return (
            super()
            .of_task(task)
            .model_copy(update={"graded": [name for name in self.graded if name == task]})
        )

    def written(self, _lists: Mapping[str, Mapping[str, Any]]) -> dict[str, Cells]:
        """Correlations of graded tasks, and accuracies of others."""
        return {task: self.of_grades if task in self.graded else self.scores for task in self.datasets}
