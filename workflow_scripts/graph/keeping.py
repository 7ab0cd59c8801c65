"""Which models a study keeps, and what must be made before the weights of the others go."""

from collections.abc import Iterator
from functools import cached_property

from workflow_scripts.graph.figures import Figures
from workflow_scripts.graph.slices import Wildcards, as_json
from workflow_scripts.graph.study import Study


class Keeping:
    """Lookups by a job's wildcards, or of the whole study."""

    def __init__(self, study: Study, figures: Figures) -> None:
        self._study = study
        self._figures = figures
        self._keep: str = study.config["keep_models"]

    def dropped(self) -> list[str]:
        """Lists of the weights that go, a file for every run; none where all models are kept."""
        runs = [] if self._keep == "all" else self._study.runs
        return [f"<results>/runs/{run}/dropped_weights.parquet" for run in runs]

    def models(self, wildcards: Wildcards) -> list[str]:
        """Models of a run, seed by seed."""
        return [self._study.model(wildcards.run, seed) for seed in self._study.runs[wildcards.run].seeds]

    def readers(self, wildcards: Wildcards) -> list[str]:
        """Everything that is made from the models of a run and from nothing nearer to them."""
        return sorted({file for model in self.models(wildcards) for file in self._readers.get(model, ())})

    def settings(self, wildcards: Wildcards) -> str:
        """What is kept, and the seeds there are."""
        return as_json({"keep_models": self._keep, "seeds": [*self._study.runs[wildcards.run].seeds]})

    @cached_property
    def _readers(self) -> dict[str, set[str]]:
        """Model to the files that are made from it."""
        found: dict[str, set[str]] = {}
        for (run, seed), files in self._study.scores.items():
            found.setdefault(self._study.model(run, seed), set()).update(files)
        for model, file in (*self._runs_of_runs(), *self._figures.read_models()):
            found.setdefault(model, set()).add(file)
        return found

    def _runs_of_runs(self) -> Iterator[tuple[str, str]]:
        """Runs that start from finished ones, and vectors of teachers."""
        for name, run in self._study.runs.items():
            for seed in run.seeds:
                if self._study.has_runs(run.encoder):
                    for model in self._study.models(run.encoder, str(seed)):
                        yield model, self._study.model(name, seed)
                if run.teacher:
                    for model in self._study.models(run.teacher, str(seed)):
                        yield model, f"<results>/teachers/{run.teacher}/{run.corpus}/seed{seed}.parquet"
