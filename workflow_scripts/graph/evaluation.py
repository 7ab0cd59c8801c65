"""What the rules that score runs look up."""

from collections.abc import Callable

from workflow_scripts.graph.references import datasets_in
from workflow_scripts.graph.slices import Wildcards, as_json, config_slice
from workflow_scripts.graph.study import Study


class Evaluation:
    """Lookups by a job's wildcards."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._suites = study.config["suites"]

    def datasets(self, kind: str) -> Callable[[Wildcards], list[str]]:
        """An input function: the datasets of a suite of ``kind``."""

        def of(wildcards: Wildcards) -> list[str]:
            named = datasets_in(self._suites[kind][wildcards.suite])
            return [f"<results>/datasets/{name}.parquet" for name in named]

        return of

    def settings(self, kind: str) -> Callable[[Wildcards], str]:
        """A param function: the block of a suite of ``kind``."""
        return config_slice(self._study.config, suite=f"suites.{kind}.{{suite}}")

    def energy_dataset(self, wildcards: Wildcards) -> str:
        """The sentences over which an attention suite averages the energy of [CLS]."""
        return f"<results>/datasets/{self._suites['attention'][wildcards.suite]['energy']['dataset']}.parquet"

    def gpus(self, kind: str) -> int:
        """What a job that encodes suites of a kind asks for; "extraction" stands for a study without training."""
        return int(kind in self._study.config["evaluation"]["on_gpu"])

    def single_encoder(self, wildcards: Wildcards) -> str:
        """The encoder that a run starts from; behind joined runs, that of the first."""
        encoder = self._study.runs[wildcards.run].encoder
        while self._study.has_runs(encoder):
            first = next(iter(self._study.members(encoder)))
            encoder = self._study.runs[first].encoder
        return f"<results>/encoders/{encoder}/record.json"

    def mteb_settings(self, wildcards: Wildcards) -> str:
        """Settings of an mteb suite, and the lists it names: a change of other lists reruns nothing."""
        suite = self._suites["mteb"][wildcards.suite]
        lists = {name: self._study.config["mteb"]["lists"][name] for name in suite["lists"]}
        return as_json({"suite": suite, "mteb": {"lists": lists, "not_in_this_mteb": {}}})

    def mteb_data(self, wildcards: Wildcards) -> str:
        """The tasks of an mteb suite, whose data are to be brought."""
        suite, lists = self._suites["mteb"][wildcards.suite], self._study.config["mteb"]["lists"]
        tasks = dict.fromkeys(task for name in suite["lists"] for task in lists[name].values())
        return as_json({"tasks": list(tasks), "missing_data": suite["missing_data"]})

    def contamination_sets(self) -> list[str]:
        """Files of all evaluation sets."""
        return [f"<results>/datasets/{name}.parquet" for name in self._study.evaluation_sets]

    def modules(self, wildcards: Wildcards) -> list[str]:
        """What loading a run's model imports by name."""
        return self._study.loading_modules(wildcards.run)

    def suite_modules(self, wildcards: Wildcards) -> list[str]:
        """Modules that evaluating a run imports by name."""
        return [f"evaluation.{wildcards.kind}", *self._study.loading_modules(wildcards.run)]
