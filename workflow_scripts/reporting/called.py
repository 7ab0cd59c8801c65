"""What readers see in place of identifiers."""

from pydantic import Field

from workflow_scripts.config import Settings


class Names(Settings):
    """The section ``names`` of the configuration."""

    methods: dict[str, str] = Field(default={}, description="Method to what readers see in its place.")
    encoders: dict[str, str] = Field(default={}, description="Encoder to what readers see in its place.")
    corpora: dict[str, str] = Field(default={}, description="Corpus to what readers see in its place.")
    datasets: dict[str, str] = Field(default={}, description="Dataset to what readers see in its place.")


class Called(Settings):
    """Names of what one figure or page shows."""

    runs: dict[str, list[str]] = Field(
        default={}, description="Run to its name, in as many parts as its identifier has between dots."
    )
    datasets: dict[str, str] = Field(default={}, description="Dataset to its name.")
    corpora: dict[str, str] = Field(default={}, description="Corpus to its name.")

    def parts(self, run: str) -> list[str]:
        """The name of a run, or of some runs by the parts that all of them begin with, part by part."""
        named = self.runs.get(run) or next(
            (parts for name, parts in self.runs.items() if name.startswith(f"{run}.")), run.split(".")
        )
        return named[: len(run.split("."))]

    def run(self, run: str) -> str:
        """The name of a run in words."""
        return ", ".join(self.parts(run))

    def dataset(self, name: str) -> str:
        """The name of a dataset in words."""
        return self.datasets.get(name, name)

    def corpus(self, name: str) -> str:
        """The name of a corpus in words."""
        return self.corpora.get(name, name)
