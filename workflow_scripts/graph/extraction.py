"""What the rules of the extraction study look up."""

from typing import Any

from workflow_scripts.extraction.blocks import (
    evaluator_of,
    files_of,
    job_settings,
    names,
    single_tables,
    suite_of,
    tasks_of,
    wikitext_settings,
)
from workflow_scripts.graph.outside import source_now
from workflow_scripts.graph.slices import Wildcards, as_json
from workflow_scripts.graph.study import Lookups, Study
from workflow_scripts.settings.suites import SUITES


class Extraction(Lookups):
    """Lookups by a job's wildcards."""

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self._extraction = study.config["extraction"]
        self.encoder = f"<results>/encoders/{self._extraction['encoder']}/record.json"
        self.biases = f"resources/tokens/{self._extraction['bias_list']}.json"
        self.wikitext = f"<results>/datasets/{self._extraction['wikitext']['dataset']}.parquet"
        self.averaged_corpus = f"<results>/datasets/{self._extraction['averages']['dataset']}.parquet"
        shown = study.shown_extraction
        self.tables = [f"<results>/tables/{name}.parquet" for name in shown["statistics"] + shown["tables"]]

    def _settings(self, wildcards: Wildcards) -> dict[str, Any]:
        """What a job of one representation reads, of one kind of task where it has one."""
        if "kind" in dict(wildcards.items()):
            return job_settings(self._extraction, wildcards.kind, wildcards.representation)
        learnt: dict[str, Any] = wikitext_settings(self._extraction, wildcards.representation)["learnt"]
        return learnt

    def averages(self, wildcards: Wildcards) -> list[str]:
        """Static averages, where a job mixes them in."""
        blocks = self._settings(wildcards)["blocks"]
        mixed = any(weight != 0 for block in blocks for weight in block["mixing_weights"])
        return ["<results>/extraction/averages.parquet"] if mixed else []

    def fitted(self, wildcards: Wildcards) -> list[str]:
        """What post-processings learnt from Wikitext, where a job reads it."""
        used = self._settings(wildcards)["postprocessings"].values()
        learnt = any(block["fit"] == "wikitext" for block in used)
        return [f"<results>/extraction/wikitext/{wildcards.representation}.parquet"] if learnt else []

    def documents(self, wildcards: Wildcards) -> list[str]:
        """Document frequencies in the vocabulary of a representation, where a weighting asks for them."""
        used = self._settings(wildcards)["weightings"].values()
        vocabulary = wildcards.representation if self.words(wildcards) else "pieces"
        counted = any(block.get("documents") == "wikitext" for block in used)
        return [f"<results>/extraction/documents/{vocabulary}.parquet"] if counted else []

    def word_vectors(self, wildcards: Wildcards) -> str:
        """Settings of reading static word vectors, and the files that they would be read from now."""
        block = self._extraction["representations"][wildcards.representation]
        origin = block["source"]
        files = {role: origin[role] for role in ("vectors", "words") if role in origin} or {"vectors": origin}
        artefact = f"extraction/words/{wildcards.representation}.parquet"
        source = source_now(self._study, artefact, [origin | {"files": files}])
        return as_json({"representation": block, "source": source})

    def words(self, wildcards: Wildcards) -> list[str]:
        """The word vectors of a representation that has some."""
        vectors = f"<results>/extraction/words/{wildcards.representation}.parquet"
        kind = self._extraction["representations"][wildcards.representation]["kind"]
        return [vectors] if kind == "words" else []

    def vocabulary_encoder(self, wildcards: Wildcards) -> list[str]:
        """The encoder whose pieces are counted, where pieces are."""
        return [self.encoder] if wildcards.vocabulary == "pieces" else []

    def vocabulary_words(self, wildcards: Wildcards) -> list[str]:
        """The word vectors whose words are counted, where words are."""
        words = f"<results>/extraction/words/{wildcards.vocabulary}.parquet"
        return [] if wildcards.vocabulary == "pieces" else [words]

    def wikitext_settings(self, wildcards: Wildcards) -> str:
        """Settings of the job that learns from Wikitext's vectors of one representation."""
        learnt = wikitext_settings(self._extraction, wildcards.representation)
        return as_json({"wikitext": self._extraction["wikitext"]} | learnt)

    def dataset(self, wildcards: Wildcards) -> str:
        """The dataset of one task."""
        return f"<results>/datasets/{tasks_of(self._config, wildcards.kind)[wildcards.task]}.parquet"

    def task_settings(self, wildcards: Wildcards) -> str:
        """Settings of one job: its representations, and the suite without its other tasks."""
        scored: Any = SUITES[evaluator_of(wildcards.kind)]
        suite = scored.parse(suite_of(self._config, wildcards.kind), "suites")
        alone = suite.of_task(wildcards.task).model_dump(mode="json")
        return as_json({"job": self._settings(wildcards), "suite": alone})

    def modules(self, wildcards: Wildcards) -> list[str]:
        """The evaluator of a kind, which a job imports by name."""
        return [f"evaluation.{evaluator_of(wildcards.kind)}"]

    def table_scores(self, wildcards: Wildcards) -> list[str]:
        """Score files of one table."""
        table = self._extraction["tables"][wildcards.table]
        return [f"<results>/{file}" for file in files_of(self._config, table)]

    def table_settings(self, wildcards: Wildcards) -> str:
        """Settings of one table."""
        table = self._extraction["tables"][wildcards.table]
        single = single_tables(self._config, wildcards.table)
        return as_json({"names": names(self._config, table), "table": table, "single": single})

    def described_datasets(self, wildcards: Wildcards) -> list[str]:
        """Datasets that one table describes."""
        rows = self._extraction["statistics"][wildcards.statistics]["rows"]
        return [
            f"<results>/datasets/{name}.parquet" for name in dict.fromkeys(row["dataset"] for row in rows)
        ]

    def published(self, wildcards: Wildcards) -> list[str]:
        """The paper's numbers of one table, and of the tables that show its tasks alone."""
        (table,) = wildcards
        alone = single_tables(self._config, table) if table in self._extraction["tables"] else {}
        files = [f"resources/published/{name}.csv" for name in dict.fromkeys([table, *alone.values()])]
        return [file for file in files if (self._study.root / file).exists()]
