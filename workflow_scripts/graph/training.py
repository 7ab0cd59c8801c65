"""What the rules that make runs look up."""

from collections.abc import Callable
from typing import Any

from workflow_scripts.graph.outside import source_now, sources_of
from workflow_scripts.graph.slices import Wildcards, as_json, deciding
from workflow_scripts.graph.study import Lookups
from workflow_scripts.methods import method_modules
from workflow_scripts.settings.encoders import EncoderBlock
from workflow_scripts.settings.grids import Run, adapting_training
from workflow_scripts.settings.training import Training as TrainingSettings


class Training(Lookups):
    """Lookups by a job's wildcards."""

    def _run(self, wildcards: Wildcards) -> Run:
        return self._study.runs[wildcards.run]

    def encoder(self, wildcards: Wildcards) -> str | list[str]:
        """The encoder that a run starts from, or the models of the runs that it joins."""
        encoder = self._run(wildcards).encoder
        return self._study.models(encoder, wildcards.seed) or f"<results>/encoders/{encoder}/record.json"

    def teacher_model(self, wildcards: Wildcards) -> str:
        """The model of the one run that a teacher is."""
        (model,) = self._study.models(wildcards.teacher, wildcards.seed)
        return model

    def teacher(self, wildcards: Wildcards) -> list[str]:
        """Vectors of a student's teacher, if it has one."""
        run = self._run(wildcards)
        vectors = f"<results>/teachers/{run.teacher}/{run.corpus}/seed{wildcards.seed}.parquet"
        return [vectors] if run.teacher else []

    def corpus(self, wildcards: Wildcards) -> str:
        """The sentences that a run trains on."""
        return f"<results>/corpora/{self._run(wildcards).corpus}/train.parquet"

    def exemplars(self, wildcards: Wildcards) -> list[str]:
        """The pool of exemplars that a run's method reads, if any."""
        pool = self._study.settings[wildcards.run]["method"].get("pool")
        return [f"<results>/exemplars/{pool}.parquet"] if pool else []

    def words(self, wildcards: Wildcards) -> list[str]:
        """Word counts of the corpus, where a run's method reads frequent words."""
        reads = self._study.settings[wildcards.run]["method"].get("words")
        return [f"<results>/corpora/{self._run(wildcards).corpus}/words.parquet"] if reads else []

    def development(self, wildcards: Wildcards) -> str:
        """The pairs by which a run chooses its checkpoint."""
        return self._study.development_set(self._run(wildcards))

    def settings(self, wildcards: Wildcards) -> str:
        """Settings of a trained run."""
        settings = self._study.settings[wildcards.run]
        training = deciding(settings["training"], TrainingSettings)
        return as_json(settings | {"training": training} | self._made_of(wildcards))

    def adapting_settings(self, wildcards: Wildcards) -> str:
        """Settings of an adapted encoder."""
        block, adapt = self._config["continue_mlm"], self._config["encoders"][wildcards.encoder]["adapt"]
        training = deciding(adapting_training(self._config, wildcards.encoder), TrainingSettings)
        adapt = {key: value for key, value in adapt.items() if key != "training"}
        return as_json({"continue_mlm": block | {"training": training}, "adapt": adapt})

    def fetching_settings(self, wildcards: Wildcards) -> str:
        """Settings of a fetched encoder, and the source that it would be copied from now."""
        block = self._config["encoders"][wildcards.encoder]["fetch"]
        source = source_now(self._study, f"encoders/{wildcards.encoder}", block["sources"])
        decides = deciding(block, EncoderBlock) | {"sources": sources_of(source, block["sources"])}
        return as_json({"encoder": decides, "source": source})

    def frozen_settings(self, wildcards: Wildcards) -> str:
        """Settings of a run that is not trained: its method."""
        return as_json({"method": self._study.settings[wildcards.run]["method"]} | self._made_of(wildcards))

    def _made_of(self, wildcards: Wildcards) -> dict[str, Any]:
        """Entries of the settings of a run made of runs: these in order, and the substitution that they make.

        Snakemake compares the inputs of a job as a set, but a twin's first encoder is not its second.
        """
        encoder = self._run(wildcards).encoder
        label = self._config["encoders"][encoder].get("label")
        members = [*self._study.members(encoder)]
        return ({"members": members} if members else {}) | ({"labels": [label]} if label else {})

    def of_training(
        self, key: str, kind: Callable[[Any], int | str] = int
    ) -> Callable[[Wildcards], int | str]:
        """A function: a number among the settings of a run's training, or of that which adapts an encoder.

        Resources take whole numbers or text.
        """

        def of(wildcards: Wildcards) -> int | str:
            named = dict(wildcards.items())
            own = (
                self._study.settings[named["run"]]["training"]
                if "run" in named
                else adapting_training(self._config, named["encoder"])
            )
            found: int | str = kind(own.get(key))
            return found

        return of

    def modules(self, wildcards: Wildcards) -> list[str]:
        """What making a run imports by name: its method's modules, and those of the runs that it is made of."""
        run = self._run(wildcards)
        behind = [] if run.corpus else self._study.modules_behind(run.encoder)
        return sorted({*method_modules(self._study.settings[wildcards.run]["method"]), *behind})

    def teacher_modules(self, wildcards: Wildcards) -> list[str]:
        """What encoding by a teacher imports by name."""
        return self._study.modules_behind(wildcards.teacher)
