"""What the rule that writes cards of models looks up."""

from typing import Any

from workflow_scripts.graph.references import datasets_of_corpora
from workflow_scripts.graph.slices import Wildcards, as_json
from workflow_scripts.graph.study import Study


class Sharing:
    """Lookups by a job's wildcards, or of the whole study."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._config = study.config

    def modules(self, wildcards: Wildcards) -> list[str]:
        """What a card quotes: the method's module."""
        return [f"methods.{self._study.method(wildcards.run)['module']}"]

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
