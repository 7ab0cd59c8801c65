"""Suites of scored pairs, and of the geometry of the space that their sentences lie in."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.names import Pairs, Texts
from workflow_scripts.settings.suites import Cells, SuiteConfig, cells

SIGNS = {"above": ">", "at_least": ">="}
SENTEVAL = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sick")
"""How the names of its sets begin."""
RELEASED = (
    "STS sentences as released, while the numbers beside them are of SentEval's, lower-cased and tokenised, "
    "which a cased tokeniser sees"
)


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


Measure = Positives | Sample


class Config(SuiteConfig):
    """A suite of scored pairs: its tasks are its datasets, and what is measured of geometry, by its name."""

    form: ClassVar[str] = "pairs"
    scores: ClassVar[Cells] = cells(("all", "wmean", "mean", "subset:*"), ("spearman", "pearson"))

    datasets: list[str] = Field(default=[], description="Datasets of the form pairs, one task each.")
    text: Literal["release", "senteval"] = Field(
        default="release",
        description="Sentences as released, or tokenised and lower-cased as SentEval has them.",
    )
    positives: dict[str, Positives] = Field(
        default={}, description="Measurements of alignment and uniformity."
    )
    samples: dict[str, Sample] = Field(
        default={}, description="Sentences whose isotropy and moduli are measured."
    )

    def conflicts(self) -> Iterator[str]:
        """There is a task, and a name stands for one."""
        yield from super().conflicts()
        if not self.tasks:
            yield "datasets: none, and no positives or samples either. Name one."
        for task in sorted(self.positives.keys() & {*self.datasets, *self.samples}):
            yield f"positives.{task}: another task of the suite has that name. Rename one."
        for task in sorted(self.samples.keys() & {*self.datasets}):
            yield f"samples.{task}: another task of the suite has that name. Rename one."

    @property
    def measures(self) -> Mapping[str, Measure]:
        """What is measured of geometry, by name."""
        return {**self.positives, **self.samples}

    @property
    def tasks(self) -> Mapping[str, str]:
        """Its datasets, and the datasets of what is measured."""
        return {**super().tasks, **{name: one.dataset for name, one in self.measures.items()}}

    def labels(self, pieces: Callable[[str], object]) -> Sequence[str]:
        """Also that a tokeniser sees other words of SentEval's sets than their published numbers are computed on."""
        cased = pieces("Town") != pieces("town")
        of_senteval = any(name.startswith(SENTEVAL) for name in self.datasets)
        released = [RELEASED] if cased and of_senteval and self.text == "release" else []
        return [*super().labels(pieces), *released]

    def of_task(self, task: str) -> Self:
        """What decides the scores of one dataset or measure."""
        alone = {
            "datasets": [name for name in self.datasets if name == task],
            "positives": {name: one for name, one in self.positives.items() if name == task},
            "samples": {name: one for name, one in self.samples.items() if name == task},
        }
        return self.model_copy(update=alone)

    def written(self, _lists: Mapping[str, Mapping[str, Any]]) -> dict[str, Cells]:
        """Correlations of each dataset, and what is measured of geometry."""
        positives = cells([""], ("alignment", "uniformity"))
        sample = cells([""], ("isoscore", "mean_modulus", "mean_cosine"))
        measured = dict.fromkeys(self.positives, positives) | dict.fromkeys(self.samples, sample)
        return dict.fromkeys(self.datasets, self.scores) | measured
