"""What the rule that writes cards of models looks up."""

from typing import Any

from workflow_scripts.graph.code import code_of, versions
from workflow_scripts.graph.references import datasets_of_corpora
from workflow_scripts.graph.slices import Wildcards, as_json
from workflow_scripts.graph.study import Study

SCRIPT = "jobs.write_model_card"


class Sharing:
    """Lookups by a job's wildcards, or of the whole study."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._config = study.config

    def cards(self) -> list[str]:
        """Cards of all runs and seeds."""
        return self._study.files("<results>/runs/{run}/seed{seed}/README.md", self._study.runs)

    def scores(self, wildcards: Wildcards) -> list[str]:
        """Score files of one run: every suite of the grids that have it, every seed of theirs."""
        files: set[str] = set()
        for experiment, grid in self._study.grids.items():
            runs = self._study.runs_of(experiment)
            its = {name: run for name, run in runs.items() if name == wildcards.run}
            for kind, suites in grid["suites"].items():
                for suite in suites:
                    pattern = f"<results>/scores/{kind}/{suite}/{{run}}/seed{{seed}}.parquet"
                    files.update(self._study.files(pattern, its))
        return sorted(files)

    def history(self, wildcards: Wildcards) -> list[str]:
        """The training history of a run that was trained."""
        trained = wildcards.run in self._study.trained
        return [f"<results>/runs/{wildcards.run}/seed{wildcards.seed}/history.parquet"] if trained else []

    def code(self, wildcards: Wildcards) -> str:
        """Code of a card, which quotes the method's module."""
        return code_of(SCRIPT, self._method(wildcards))

    def versions(self, wildcards: Wildcards) -> str:
        """Versions of the packages behind it."""
        return versions(SCRIPT, self._method(wildcards))

    def _method(self, wildcards: Wildcards) -> str:
        return f"methods.{self._study.method(wildcards.run)['module']}"

    def settings(self, wildcards: Wildcards) -> str:
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
