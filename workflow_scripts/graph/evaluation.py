"""What the rules that score runs look up."""

from collections.abc import Callable

from workflow_scripts.graph.code import code_of, versions
from workflow_scripts.graph.joint import Pair, joint_suites
from workflow_scripts.graph.references import datasets_in
from workflow_scripts.graph.slices import Wildcards, as_json
from workflow_scripts.graph.study import Study

JOINT_GROUP = "evaluations"
"""Group of the jobs that evaluate scored pairs and geometry together, as slurm/config.yaml names it."""


class Evaluation:
    """Lookups by a job's wildcards."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._suites = study.config["suites"]
        self.joint = joint_suites(study)

    def datasets(self, kind: str) -> Callable[[Wildcards], list[str]]:
        """An input function: the datasets of a suite of ``kind``."""
        return lambda wildcards: self.datasets_of(kind, wildcards.suite)

    def datasets_of(self, kind: str, suite: str) -> list[str]:
        """The datasets of one suite."""
        return [f"<results>/datasets/{name}.parquet" for name in datasets_in(self._suites[kind][suite])]

    def suite(self, kind: str, suite: str) -> str:
        """Settings of one suite."""
        return as_json({"suite": self._suites[kind][suite]})

    def suite_beside(self, pair: Pair) -> str:
        """Settings of a suite of geometry that is measured beside one of scored pairs."""
        beside = self._suites["sts"][pair.sts]
        return as_json({"suite": self._suites["geometry"][pair.geometry], "beside": beside})

    def energy_dataset(self, wildcards: Wildcards) -> str:
        """The sentences over which an attention suite averages the energy of [CLS]."""
        return f"<results>/datasets/{self._suites['attention'][wildcards.suite]['energy']['dataset']}.parquet"

    def gpus(self, *kinds: str) -> int:
        """What a job that encodes suites of these kinds asks for; "extraction" stands for a study without training."""
        return int(any(kind in self._study.config["evaluation"]["on_gpu"] for kind in kinds))

    def group(self, *kinds: str) -> str | None:
        """The group of jobs that are queued as one, as slurm/config.yaml has for other rules; none on a GPU.

        A group asks for the GPUs of all its jobs.
        """
        return None if self.gpus(*kinds) else JOINT_GROUP

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

    def code(self, script: str) -> Callable[[Wildcards], str]:
        """An input function: code of a script that loads a run's model."""
        return lambda wildcards: code_of(script, *self._study.loading_modules(wildcards.run))

    def versions(self, script: str) -> Callable[[Wildcards], str]:
        """A param function: versions of the packages behind it."""
        return lambda wildcards: versions(script, *self._study.loading_modules(wildcards.run))

    def suite_code(self, wildcards: Wildcards) -> str:
        """Code of a suite's evaluator, and of loading the run."""
        return code_of("jobs.evaluate_suite", *self._evaluating_modules(wildcards))

    def suite_versions(self, wildcards: Wildcards) -> str:
        """Versions of the packages behind it."""
        return versions("jobs.evaluate_suite", *self._evaluating_modules(wildcards))

    def _evaluating_modules(self, wildcards: Wildcards) -> list[str]:
        """Modules that evaluating a run imports by name."""
        return [f"evaluation.{wildcards.kind}", *self._study.loading_modules(wildcards.run)]
