"""What the rules that score runs look up."""

from functools import cache

from workflow_scripts.graph.benchmarks import lists_of, selection
from workflow_scripts.graph.references import tasks_in
from workflow_scripts.graph.slices import Config, Wildcards, as_json
from workflow_scripts.graph.study import Lookups, Study


class Evaluation(Lookups):
    """Lookups by a job's wildcards."""

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self._mteb = cache(self._mteb_of)

    def _mteb_of(self, suite: str) -> tuple[Config, Config]:
        """Settings of an mteb suite and its lists, which every run and seed asks for."""
        return self._config["suites"]["mteb"][suite], lists_of(self._config, suite)

    def datasets(self, wildcards: Wildcards, kind: str = "sts") -> list[str]:
        """The datasets of a suite, each once; a rule of one kind has no wildcard for it."""
        kind = dict(wildcards.items()).get("kind", kind)
        named = tasks_in(self._config["suites"][kind][wildcards.suite]).values()
        return [f"<results>/datasets/{name}.parquet" for name in dict.fromkeys(named)]

    def gpus(self, kind: str) -> int:
        """What a job that encodes suites of a kind asks for; "extraction" stands for a study without training."""
        return int(kind in self._config["evaluation"]["on_gpu"])

    def single_encoder(self, wildcards: Wildcards) -> str:
        """The encoder that a run starts from; behind joined runs, that of the first."""
        encoder = self._study.runs[wildcards.run].encoder
        while members := self._study.members(encoder):
            encoder = next(iter(members.values())).encoder
        return f"<results>/encoders/{encoder}/record.json"

    def mteb_settings(self, wildcards: Wildcards) -> str:
        """Settings of an mteb suite, and its lists: a change of other lists reruns nothing."""
        suite, lists = self._mteb(wildcards.suite)
        return as_json({"suite": suite, "mteb": {"lists": lists, "not_in_this_mteb": {}}})

    def mteb_data(self, wildcards: Wildcards) -> str:
        """The tasks of an mteb suite, whose data are to be fetched."""
        suite, lists = self._mteb(wildcards.suite)
        tasks = dict.fromkeys(task for tasks in lists.values() for task in tasks.values())
        asked = {"tasks": list(tasks), "missing_data": suite["missing_data"]}
        return as_json(asked | ({"selection": chosen} if (chosen := selection(suite)) else {}))

    def modules(self, wildcards: Wildcards) -> list[str]:
        """What loading a run's model imports by name."""
        return self._study.loading_modules(wildcards.run)

    def suite_modules(self, wildcards: Wildcards) -> list[str]:
        """Modules that evaluating a run imports by name."""
        return [f"evaluation.{wildcards.kind}", *self._study.loading_modules(wildcards.run)]
