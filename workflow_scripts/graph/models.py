"""What the rules of finished models look up: their cards, and what must be made before their weights go."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from workflow_scripts.graph.figures import Figures
from workflow_scripts.graph.references import datasets_of_corpora
from workflow_scripts.graph.slices import Wildcards, as_json
from workflow_scripts.graph.study import Study


class Models:
    """Lookups by a job's wildcards, or of the whole study."""

    def __init__(self, study: Study, figures: Figures) -> None:
        self._study = study
        self._config = study.config
        self._figures = figures

    def modules(self, wildcards: Wildcards) -> list[str]:
        """What a card quotes: the method's module."""
        return [f"methods.{self._study.method(wildcards.run)['module']}"]

    def card(self, wildcards: Wildcards) -> str:
        """Encoders, data and settings of a run, as ``reporting.model_card.Config`` reads them."""
        run = self._study.runs[wildcards.run]
        settings = self._study.settings(wildcards.run)
        behind = self._study.behind([run.encoder, run.teacher])
        corpora = behind.corpora | ({run.corpus} if run.corpus else set())
        return as_json(
            {
                "encoders": [self._encoder(name) for name in sorted(behind.published)],
                "data": [self._dataset(name) for name in datasets_of_corpora(self._config, corpora)],
                "method": settings["method"],
                "training": settings["training"] if run.corpus else None,
            }
        )

    def _encoder(self, name: str) -> dict[str, Any]:
        fetch = self._config["encoders"][name]["fetch"]
        first, *_ = fetch["sources"]
        hub = next((source["repository"] for source in fetch["sources"] if source["kind"] == "hub"), None)
        origin = hub or first.get("package") or first.get("path")
        return {"name": name, "licence": fetch["licence"], "origin": origin, "hub": hub}

    def _dataset(self, name: str) -> dict[str, Any]:
        about = self._config["datasets"][name]["about"]
        return {"name": name, **{key: about[key] for key in ("licence", "origin", "citation")}}

    def dropped(self) -> list[str]:
        """Lists of the weights that go, a file for every run; none where models are kept."""
        runs = self._study.runs if self._config["keep_models"] == "none" else ()
        return [f"<results>/runs/{run}/dropped_weights.parquet" for run in runs]

    def of_run(self, wildcards: Wildcards) -> list[str]:
        """Models of a run, seed by seed."""
        return [self._study.model(wildcards.run, seed) for seed in self._study.runs[wildcards.run].seeds]

    def readers(self, wildcards: Wildcards) -> list[str]:
        """Everything that is made from the models of a run and from nothing nearer to them."""
        return sorted({file for model in self.of_run(wildcards) for file in self._readers.get(model, ())})

    def seeds(self, wildcards: Wildcards) -> str:
        """Settings of the job that drops models: the seeds there are."""
        return as_json({"seeds": [*self._study.runs[wildcards.run].seeds]})

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
