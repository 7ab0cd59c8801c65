"""What the rules of tables and the report look up."""

from workflow_scripts.extraction.blocks import datasets_of as extraction_datasets
from workflow_scripts.graph.figures import without_figures
from workflow_scripts.graph.grid_columns import numbered_columns
from workflow_scripts.graph.names import called, called_runs
from workflow_scripts.graph.references import datasets_of_corpora
from workflow_scripts.graph.runs import Run, paper_of
from workflow_scripts.graph.slices import Wildcards, as_json
from workflow_scripts.graph.study import Study
from workflow_scripts.reporting.coverage import PAPERS


class Reporting:
    """Lookups by a job's wildcards, or of the whole study."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self.papers = sorted({paper_of(experiment) for experiment in study.grids})

    def scores(self, wildcards: Wildcards) -> list[str]:
        """Score files of every suite, run and seed of one experiment."""
        grid = self._study.grids[wildcards.experiment]
        return [
            file
            for kind, suites in grid["suites"].items()
            for suite in suites
            for file in self._study.files(
                f"<results>/scores/{kind}/{suite}/{{run}}/seed{{seed}}.parquet",
                self._study.runs_of(wildcards.experiment),
            )
        ]

    def times(self, wildcards: Wildcards) -> list[str]:
        """Files of the times that measured columns of one experiment show, of every run and seed."""
        grid = self._study.grids[wildcards.experiment]
        shown = {column["suite"] for column in grid["columns"] if column.get("measured")}
        return [
            file
            for kind, suites in grid["suites"].items()
            for suite in suites
            if suite in shown
            for file in self._study.files(
                f"<benchmarks>/evaluate_{kind}/{suite}/{{run}}/seed{{seed}}.times.parquet",
                self._study.runs_of(wildcards.experiment),
            )
        ]

    def metrics(self, wildcards: Wildcards) -> list[str]:
        """Metrics of the training of every run and seed, if a column of the experiment shows the path of one."""
        columns = self._study.grids[wildcards.experiment]["columns"]
        if not any("path_of" in column for column in columns):
            return []
        runs = self._study.runs_of(wildcards.experiment)
        trained = {name: run for name, run in runs.items() if run.corpus}
        return self._study.files("<results>/runs/{run}/seed{seed}/metrics.parquet", trained)

    def tables_of_times(self, paper: str | None = None) -> list[str]:
        """Measured columns of one paper's experiments, or of all."""
        return [
            f"<benchmarks>/tabulate_times/{name}.parquet"
            for name, grid in self._study.grids.items()
            if paper in (None, paper_of(name)) and any(column.get("measured") for column in grid["columns"])
        ]

    def table_settings(self, wildcards: Wildcards) -> str:
        """Settings of a table: its grid, the tests, and the development set, if a column is of it."""
        experiment = wildcards.experiment
        settings = {
            "experiment": without_figures(self._study.grids[experiment]),
            "significance": self._study.config["significance"],
        }
        columns = numbered_columns(self._study.grids[experiment])
        development = self._study.config["development"]["dataset"]
        if development in {column.get("task") for _, column in columns} - {None}:
            settings["development"] = development
        return as_json(settings)

    def published(self, wildcards: Wildcards) -> list[str]:
        """Tables of papers that one experiment names."""
        tables = self._study.grids[wildcards.experiment].get("published", [])
        return [f"resources/published/{table}.csv" for table in tables]

    def printed(self) -> list[str]:
        """Tables of all papers."""
        folder = self._study.root / "resources/published"
        return [f"resources/published/{file.name}" for file in sorted(folder.glob("*.csv"))]

    def ledger(self) -> list[str]:
        """What is said of printed numbers without a run, a file for each paper."""
        return [f"resources/ledger/{paper}.yaml" for paper in PAPERS]

    def tables(self, paper: str | None = None) -> list[str]:
        """Tables of one paper's experiments, or of all."""
        asked = [name for name in self._study.grids if paper in (None, paper_of(name))]
        return [f"<results>/tables/{experiment}.parquet" for experiment in asked]

    def datasets(self, suffix: str) -> list[str]:
        """Files of all datasets that the study reads."""
        config = self._study.config
        trained = datasets_of_corpora(config, self._study.read_corpora)
        extracted = extraction_datasets(config) if any(self._study.shown_extraction.values()) else []
        names = {*trained, *self._study.evaluation_sets, *extracted}
        return [f"<results>/datasets/{name}{suffix}" for name in sorted(names)]

    def corpora(self, file: str) -> list[str]:
        """One file of each corpus that the study reads."""
        return [f"<results>/corpora/{corpus}/{file}" for corpus in self._study.read_corpora]

    def round_trips(self) -> list[str]:
        """What was dropped of the corpora that were translated there and back."""
        blocks = self._study.config["corpora"]
        made = [corpus for corpus in self._study.read_corpora if "round_trip" in blocks[corpus]]
        return [f"<results>/corpora/{corpus}/dropped.parquet" for corpus in made]

    def contamination(self) -> list[str]:
        """Overlap of each corpus with the evaluation sets, where the study measures it."""
        measured = self._study.read_corpora if self._study.config["contamination"] else []
        return [f"<results>/contamination/{corpus}.parquet" for corpus in measured]

    def histories(self) -> list[str]:
        """Histories of the training of every run that a table shows."""
        return self._study.files("<results>/runs/{run}/seed{seed}/history.parquet", self._trained)

    @property
    def _shown(self) -> dict[str, Run]:
        """Runs that tables show."""
        return {name: run for grid in self._study.grids for name, run in self._study.runs_of(grid).items()}

    @property
    def _trained(self) -> dict[str, Run]:
        return {name: self._study.runs[name] for name, run in self._shown.items() if run.corpus}

    def page_settings(self) -> str:
        """Settings of the page, and the names of what it shows."""
        config = self._study.config
        names = config["names"]
        files = self.datasets("")
        shown = {
            "runs": called_runs(names, self._shown),
            "datasets": called(names, "datasets", (file.rsplit("/", 1)[-1] for file in files)),
            "corpora": called(names, "corpora", self._study.read_corpora),
        }
        parts = {
            "name": config["name"],
            "experiments": config["experiments"],
            "page": config["report"]["page"],
        }
        return as_json(parts | {"called": shown})

    def exemplars(self) -> list[str]:
        """Pools of exemplars that the study makes."""
        return [f"<results>/exemplars/{pool}.parquet" for pool in self._study.asked_pools]
