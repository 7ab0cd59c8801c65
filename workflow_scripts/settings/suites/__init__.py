"""Settings of suites, and what their files hold: a module a kind, imported by the name in the configuration."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.readouts.pooling import Config as Pooling

Cells = frozenset[tuple[str, str]]
"""Aggregations, which may end in ``*``, with the metrics that each has."""


def cells(aggregations: Iterable[str], metrics: Iterable[str]) -> Cells:
    """Every metric under every aggregation."""
    return frozenset(product(aggregations, metrics))


class Suite(Settings):
    """Settings of a suite: every field is a key of its block below ``suites.<kind>``."""

    form: ClassVar[str | None] = None
    """Form of its ``datasets``, if it has any."""
    on_gpu: ClassVar[bool] = True
    """Whether its jobs may have a GPU."""
    scores: ClassVar[Cells] = cells(["*"], ["*"])
    """What files of scores hold of each of its ``datasets``; everything for a kind that does not say."""

    def written(self, _lists: Mapping[str, Mapping[str, Any]]) -> dict[str, Cells]:
        """Tasks, and what files of scores hold of each.

        Args:
            _lists: Lists of mteb's tasks, by name.
        """
        return dict.fromkeys(getattr(self, "datasets", ()), self.scores)

    def shown(self, lists: Mapping[str, Mapping[str, Any]]) -> dict[str, Cells]:
        """Of each task what tables can show."""
        return self.written(lists)

    def timed(self) -> dict[str, Cells]:
        """Tasks whose time is measured, and what files of times hold of each."""
        return {}


class SuiteConfig(Suite):
    """Settings of a suite whose tasks are scored from vectors of their texts (``evaluation.base``)."""

    form: ClassVar[str]

    datasets: list[str] = Field(min_length=1, description="Datasets, one task each.")
    max_tokens: int = Field(gt=2, description="Longer texts are cut; [CLS] and [SEP] count.")
    label: str | None = Field(
        default=None, description="Substitution to print, where something stands in for what a paper has."
    )
    readout: Pooling | None = Field(
        default=None,
        description="Readout to use with every run's backbone, without its own readout and head; null for its own.",
    )
    widths: tuple[Annotated[int, Field(gt=0)], ...] = Field(
        default=(),
        description="Scored too are so many first entries of every vector: aggregation all@64 beside all.",
    )

    def conflicts(self) -> Iterator[str]:
        """No width is given twice."""
        if len({*self.widths}) < len(self.widths):
            yield f"widths: {[*self.widths]}. Give each once."

    def shown(self, lists: Mapping[str, Mapping[str, Any]]) -> dict[str, Cells]:
        """What is written of whole vectors, and the same at each width."""
        ends = ["", *(f"@{width}" for width in self.widths)]
        return {
            task: frozenset((f"{aggregation}{end}", metric) for aggregation, metric in own for end in ends)
            for task, own in self.written(lists).items()
        }

    @property
    def tasks(self) -> Mapping[str, str]:
        """Its tasks, each with the dataset that it reads."""
        return {name: name for name in self.datasets}

    def labels(self, _pieces: Callable[[str], object]) -> Sequence[str]:
        """Substitutions to print with the scores.

        Args:
            _pieces: Cuts a text into an encoder's tokens.
        """
        return [self.label] if self.label else []

    def of_task(self, task: str) -> Self:
        """What decides the scores of one task: all but what is about others."""
        return self.model_copy(update={"datasets": [task]})
