"""Suites of geometry."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.names import Pairs, Texts
from workflow_scripts.settings.suites import Cells, Suite, cells

SIGNS = {"above": ">", "at_least": ">="}


class Positives(Settings):
    """One measurement of alignment and uniformity."""

    dataset: Pairs = Field(description="Dataset of the form pairs.")
    comparison: Literal["above", "at_least"] = Field(
        description="How the score of positive pairs compares with the threshold."
    )
    threshold: float = Field(description="Threshold on the dataset's own scale.")
    normalise: bool = Field(description="Whether vectors are scaled to length 1 first.")

    def describe(self) -> str:
        """A description of the measurement for tables."""
        form = "normalised" if self.normalise else "not normalised"
        return f"{self.dataset}, score {SIGNS[self.comparison]} {self.threshold:g}, {form}"


class Sample(Settings):
    """A sample of sentences, on which isotropy, modulus and mean cosine are measured."""

    dataset: Texts = Field(description="Dataset of sentences or pairs; each distinct sentence counts once.")
    min_characters: int = Field(ge=0, description="Shorter sentences are left out.")
    max_sentences: int = Field(gt=1, description="Use the first so many sentences.")


class Config(Suite):
    """Measurements by name; the name is also the task in their scores."""

    positives: dict[str, Positives]
    samples: dict[str, Sample]
    max_tokens: int = Field(gt=2, description="Longer sentences are truncated; [CLS] and [SEP] count.")

    def conflicts(self) -> Iterator[str]:
        """A name is either that of positives or of a sample."""
        for task in sorted(self.positives.keys() & self.samples.keys()):
            yield f"samples.{task}: positives has that name too. Rename one."

    @property
    def measures(self) -> dict[str, Positives | Sample]:
        """All of them by name."""
        return {**self.positives, **self.samples}

    def of_task(self, task: str) -> Self:
        """What decides the scores of one measure."""
        positives, samples = _only(task, self.positives), _only(task, self.samples)
        return self.model_copy(update={"positives": positives, "samples": samples})

    def written(self, _lists: Mapping[str, Mapping[str, Any]]) -> dict[str, Cells]:
        """A task for each measure."""
        positives = cells([""], ("alignment", "uniformity"))
        sample = cells([""], ("isoscore", "mean_modulus", "mean_cosine"))
        return dict.fromkeys(self.positives, positives) | dict.fromkeys(self.samples, sample)


def _only(task: str, measures: Mapping[str, Settings]) -> dict[str, Settings]:
    return {name: measure for name, measure in measures.items() if name == task}
