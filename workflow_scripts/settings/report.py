"""Settings of the report: names in words, the page, tests of differences, shared texts."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.names import AnyDataset, Refers

Word = Annotated[str, Field(min_length=1)]


class Names(Settings):
    """The section ``names`` of the configuration."""

    methods: dict[Annotated[str, Refers("methods")], Word] = Field(
        default={}, description="Method to what readers see in its place."
    )
    encoders: dict[Annotated[str, Refers("encoders")], Word] = Field(
        default={}, description="Encoder to what readers see in its place."
    )
    corpora: dict[Annotated[str, Refers("corpora")], Word] = Field(
        default={}, description="Corpus to what readers see in its place."
    )
    datasets: dict[AnyDataset, Word] = Field(
        default={}, description="Dataset to what readers see in its place."
    )


class Called(Settings):
    """Names of what one figure or page shows."""

    runs: dict[str, list[str]] = Field(
        default={}, description="Run to its name, in as many parts as its identifier has between dots."
    )
    datasets: dict[str, str] = Field(default={}, description="Dataset to its name.")
    corpora: dict[str, str] = Field(default={}, description="Corpus to its name.")

    def parts(self, run: str) -> list[str]:
        """The name of a run, part by part; a series is called by what the names of its runs begin with."""
        return self._named(run) or run.split(".")

    def run(self, run: str) -> str:
        """The name of a run in words; one without a name is called by its identifier."""
        named = self._named(run)
        return ", ".join(named) if named else run

    def _named(self, run: str) -> list[str] | None:
        named = next((parts for name, parts in self.runs.items() if f"{name}.".startswith(f"{run}.")), None)
        return self.runs.get(run) or (named and named[: len(run.split("."))])

    def dataset(self, name: str) -> str:
        """The name of a dataset in words."""
        return self.datasets.get(name, name)

    def corpus(self, name: str) -> str:
        """The name of a corpus in words."""
        return self.corpora.get(name, name)


class Page(Settings):
    """Settings of the page."""

    shows: str | None = Field(description="What the study can show, for readers; null prints nothing.")
    cannot_show: str | None = Field(description="What it cannot show; null prints nothing.")


class Significance(Settings):
    """How differences are tested."""

    alpha: float = Field(gt=0, lt=1, description="Two-sided level of significance.")
    power: float = Field(
        gt=0, lt=1, description="Probability of detecting the minimum detectable difference."
    )
    resamples: int = Field(gt=0, description="Bootstrap samples of a task's pairs.")
    seed: int = Field(ge=0, description="Seed for drawing bootstrap samples.")

    def conflicts(self) -> Iterator[str]:
        """A test detects what is there more often than what is not."""
        if self.power <= self.alpha:
            yield f"power: {self.power:g}, not above alpha {self.alpha:g}, which chance alone has. Raise it."


class Contamination(Settings):
    """Settings of the contamination table."""

    examples: int = Field(ge=0, description="Shared texts to list for each task and kind of match.")
