"""The study without training, as its rules see it: what each job reads, and the settings of its jobs and tables."""

from functools import cached_property

from workflow_scripts.graph.blocks import (
    evaluator_of,
    files_of,
    job_settings,
    names,
    shown_blocks,
    single_tables,
    suite_of,
    tasks_of,
    wikitext_settings,
)
from workflow_scripts.graph.call import Wildcards, as_json
from workflow_scripts.graph.outside import source_now
from workflow_scripts.graph.study import Study
from workflow_scripts.settings.extraction import Idf, JobSettings, WordRepresentation


class Extraction:
    """Lookups by a job's wildcards."""

    def __init__(self, study: Study) -> None:
        self._study, self._settings = study, study.settings
        self._extraction = extraction = study.settings.extraction
        self.encoder = f"<results>/encoders/{extraction.encoder}/record.json"
        self.biases = f"resources/tokens/{extraction.bias_list}.json"

    @cached_property
    def tables(self) -> list[str]:
        """Tables that the study shows."""
        shown = self._study.shown_extraction
        return [f"<results>/tables/{name}.parquet" for name in shown.statistics + shown.tables]

    @cached_property
    def shown(self) -> list[str]:
        """Score files of the tables and figures that the study shows."""
        blocks = shown_blocks(self._extraction) if self._study.shows_extraction else []
        files = (file for block in blocks for file in files_of(self._settings, block))
        return [f"<results>/{file}" for file in dict.fromkeys(files)]

    def _job(self, wildcards: Wildcards) -> JobSettings:
        """Settings of a job of one representation, for one kind of task if it has one."""
        if "kind" in dict(wildcards.items()):
            return job_settings(self._extraction, wildcards.kind, wildcards.representation)
        return wikitext_settings(self._extraction, wildcards.representation)["learnt"]

    def reads(self, wildcards: Wildcards) -> dict[str, str]:
        """Names of what a job of one representation reads: of each kind of file that it reads at all."""
        job, name = self._job(wildcards), wildcards.representation
        words = isinstance(job.representation, WordRepresentation)
        counted = (isinstance(one, Idf) and one.documents == "wikitext" for one in job.weightings.values())
        asked = {
            "words": (name, words),
            "documents": (name if words else "pieces", any(counted)),
            "averages": ("averages", any(any(one.mixing_weights) for one in job.blocks)),
            "fitted": (name, any(one.fit == "wikitext" for one in job.postprocessings.values())),
        }
        return {kind: named for kind, (named, is_read) in asked.items() if is_read}

    def word_vectors(self, wildcards: Wildcards) -> str:
        """Settings of reading static word vectors, and the files that they would be read from now."""
        block = self._extraction.representations[wildcards.representation]
        assert isinstance(block, WordRepresentation)
        artefact = f"extraction/words/{wildcards.representation}.parquet"
        return as_json({"representation": block, "source": source_now(self._study, artefact, [block.source])})

    def wikitext(self, wildcards: Wildcards) -> str:
        """Settings of the job that learns from Wikitext's vectors of one representation."""
        learnt = wikitext_settings(self._extraction, wildcards.representation)
        return as_json({"wikitext": self._extraction.wikitext, **learnt})

    def dataset(self, wildcards: Wildcards) -> str:
        """The dataset of one task."""
        return f"<results>/datasets/{tasks_of(self._settings, wildcards.kind)[wildcards.task]}.parquet"

    def task(self, wildcards: Wildcards) -> str:
        """Settings of one job: its representations, and the suite without its other tasks."""
        suite = suite_of(self._settings, wildcards.kind)
        assert suite, f"the study has no suite of {wildcards.kind}"
        return as_json({"job": self._job(wildcards), "suite": suite.for_task(wildcards.task)})

    def modules(self, wildcards: Wildcards) -> list[str]:
        """The evaluator of a kind, which a job imports by name."""
        return [f"evaluation.{evaluator_of(wildcards.kind)}"]

    def scores(self, wildcards: Wildcards) -> list[str]:
        """Score files of one table."""
        files = files_of(self._settings, self._extraction.tables[wildcards.table])
        return [f"<results>/{file}" for file in files]

    def table(self, wildcards: Wildcards) -> str:
        """Settings of one table."""
        table = self._extraction.tables[wildcards.table]
        single = single_tables(self._extraction, wildcards.table)
        return as_json({"names": names(self._settings, table), "table": table, "single": single})

    def described(self, wildcards: Wildcards) -> list[str]:
        """Datasets that one table describes."""
        rows = self._extraction.statistics[wildcards.statistics].rows
        return [f"<results>/datasets/{name}.parquet" for name in dict.fromkeys(row.dataset for row in rows)]

    def published(self, wildcards: Wildcards) -> list[str]:
        """The paper's numbers of one table, and of the tables that show its tasks alone."""
        (table,) = wildcards
        alone = single_tables(self._extraction, table) if table in self._extraction.tables else {}
        files = [f"resources/published/{name}.csv" for name in dict.fromkeys([table, *alone.values()])]
        return [file for file in files if (self._study.root / file).exists()]
