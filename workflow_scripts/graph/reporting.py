"""What the rules of tables, claims, the report and finished models look up."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import Any

from workflow_scripts.extraction.blocks import datasets_of as extraction_datasets
from workflow_scripts.graph.figures import Figures, without_figures
from workflow_scripts.graph.references import called, called_runs, datasets_of_corpora
from workflow_scripts.graph.slices import Wildcards, as_json
from workflow_scripts.graph.study import Lookups, Study
from workflow_scripts.settings.claims import FOLDER, Claim, Comparison, claims_in
from workflow_scripts.settings.extraction import tables_of
from workflow_scripts.settings.grids import PAPERS, Run, paper_of, scored_columns


class Reporting(Lookups):
    """Lookups by a job's wildcards, or of the whole study."""

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self.papers = sorted({paper_of(experiment) for experiment in study.grids})

    def scores(self, wildcards: Wildcards) -> list[str]:
        """Score files of every suite, run and seed of one experiment."""
        pattern = "<results>/scores/{kind}/{suite}/{run}/seed{seed}.parquet"
        return self._of_suites(wildcards.experiment, pattern)

    def times(self, wildcards: Wildcards) -> list[str]:
        """Files of the times that measured columns of one experiment show, of every run and seed."""
        columns = self._study.grids[wildcards.experiment]["columns"]
        shown = {column["suite"] for column in columns if column.get("measured")}
        pattern = "<benchmarks>/evaluate_{kind}/{suite}/{run}/seed{seed}.times.parquet"
        return self._of_suites(wildcards.experiment, pattern, shown)

    def _of_suites(self, experiment: str, pattern: str, shown: Collection[str] | None = None) -> list[str]:
        """A file of every run and seed for each suite of an experiment, or for each of those that are shown."""
        return [
            file
            for kind, suites in self._study.grids[experiment]["suites"].items()
            for suite in suites
            if shown is None or suite in shown
            for file in self._study.files(
                pattern.replace("{kind}", kind).replace("{suite}", suite), self._study.runs_of(experiment)
            )
        ]

    def metrics(self, wildcards: Wildcards) -> list[str]:
        """Metrics of the training of every run and seed, if a column of the experiment shows the path of one."""
        columns = self._study.grids[wildcards.experiment]["columns"]
        runs = self._study.runs_of(wildcards.experiment)
        shown = any("path_of" in column for column in columns)
        trained = {name: run for name, run in runs.items() if shown and run.corpus}
        return self._study.files("<results>/runs/{run}/seed{seed}/metrics.parquet", trained)

    def published(self, wildcards: Wildcards) -> list[str]:
        """Tables of papers that one experiment names."""
        tables = self._study.grids[wildcards.experiment].get("published", [])
        return [f"resources/published/{table}.csv" for table in tables]

    def table_settings(self, wildcards: Wildcards) -> str:
        """Settings of a table: its grid, the tests, and the development set, if a column is of it."""
        grid = self._study.grids[wildcards.experiment]
        settings = {
            "experiment": without_figures(grid),
            "significance": self._config["significance"],
        }
        development = self._config["development"]["dataset"]
        if development in {column.get("task") for column in grid["columns"]} - {None}:
            settings["development"] = development
        trained = {
            run: _length(self._study.settings[run]["training"])
            for run, about in self._study.runs_of(wildcards.experiment).items()
            if about.corpus
        }
        if len({*trained.values()}) > 1:
            settings["trained"] = trained
        return as_json(settings)

    def tables(self, paper: str | None = None) -> list[str]:
        """Tables of one paper's experiments, or of all."""
        asked = [name for name in self._study.grids if paper in (None, paper_of(name))]
        return [f"<results>/tables/{experiment}.parquet" for experiment in asked]

    def tables_of_times(self, paper: str | None = None) -> list[str]:
        """Measured columns of one paper's experiments, or of all."""
        return [
            f"<benchmarks>/tabulate_times/{name}.parquet"
            for name, grid in self._study.grids.items()
            if paper in (None, paper_of(name)) and any(column.get("measured") for column in grid["columns"])
        ]

    def of_page(self) -> dict[str, list[str]]:
        """What the page reads besides tables, figures and claims, by role."""
        study, corpora = self._study, self._study.read_corpora
        trips = [corpus for corpus in corpora if "round_trip" in study.config["corpora"][corpus]]
        trained = {name: study.runs[name] for name, run in self._shown.items() if run.corpus}
        printed = sorted((study.root / "resources/published").glob("*.csv"))
        return {
            "datasets": [f"<results>/datasets/{name}.parquet" for name in self.datasets],
            "dropped": [f"<results>/datasets/{name}.dropped.parquet" for name in self.datasets],
            "train": [f"<results>/corpora/{corpus}/train.parquet" for corpus in corpora],
            "lost": [f"<results>/corpora/{corpus}/dropped.parquet" for corpus in trips],
            "words": [f"<results>/corpora/{corpus}/words.parquet" for corpus in corpora],
            "contamination": [
                f"<results>/contamination/{corpus}.parquet"
                for corpus in corpora
                if study.config["contamination"]
            ],
            "exemplars": [f"<results>/exemplars/{pool}.parquet" for pool in study.asked_pools],
            "development": sorted({study.development_set(run) for run in study.trained.values()}),
            "histories": study.files("<results>/runs/{run}/seed{seed}/history.parquet", trained),
            "published": [f"resources/published/{file.name}" for file in printed],
            "ledger": [f"resources/ledger/{paper}.yaml" for paper in PAPERS],
        }

    @property
    def datasets(self) -> list[str]:
        """All datasets that the study reads."""
        trained = datasets_of_corpora(self._config, self._study.read_corpora)
        extracted = extraction_datasets(self._config) if any(self._study.shown_extraction.values()) else []
        return sorted({*trained, *self._study.evaluation_sets, *extracted})

    @property
    def _shown(self) -> dict[str, Run]:
        """Runs that tables show."""
        return {name: run for grid in self._study.grids for name, run in self._study.runs_of(grid).items()}

    def page_settings(self) -> str:
        """Settings of the page, and the names of what it shows."""
        names = self._config["names"]
        shown = {
            "runs": called_runs(names, self._shown),
            "datasets": called(names, "datasets", self.datasets),
            "corpora": called(names, "corpora", self._study.read_corpora),
        }
        parts = {key: self._config[key] for key in ("name", "experiments")}
        return as_json(parts | {"page": self._config["report"]["page"], "called": shown})


def _length(training: Mapping[str, Any]) -> str:
    """How long a training lasts, as tables print it."""
    epochs, steps = training["epochs"], training["max_steps"]
    return f"{steps:,} steps" if epochs is None else f"{epochs} epoch{'s' if epochs > 1 else ''}"


class Claims(Lookups):
    """What the rule that judges claims of papers looks up.

    Nothing is made for a claim: it is compared where the study makes the table that it names. Tables hold the values
    behind their means; the rule reads scored pairs too, where neither side has seeds.
    """

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        papers, scale = (study.config["claims"][key] for key in ("papers", "scale"))
        self._scale = scale
        self.verdicts = ["<results>/claims.parquet"] if papers else []
        self._held = [
            Claim.parse(row, place)
            for paper in papers
            for place, row in claims_in(study.root / FOLDER, paper, scale).items()
        ]
        shown = study.shown_extraction
        drawn = set(shown["figures"]) & set(tables_of(study.config["extraction"]))
        made = {*study.grids, *shown["tables"], *drawn}
        asked = (claim.compared for claim in self._held if isinstance(claim.compared, Comparison))
        self._asked = [one for one in asked if one.table in made]

    def settings(self) -> str:
        """The claims, what each is compared by at the study's scale, and how differences are tested."""
        held = {"claims": [claim.model_dump() for claim in self._held], "scale": self._scale}
        return as_json({"held": held, "significance": self._config["significance"]})

    def tables(self) -> list[str]:
        """Tables that claims are compared in."""
        drawn = self._study.shown_extraction["figures"]
        asked = dict.fromkeys(one.table for one in self._asked if one.table not in drawn)
        return [f"<results>/tables/{name}.parquet" for name in asked]

    def figures(self) -> list[str]:
        """The record of the extraction study's figures, where claims are compared in the data of one."""
        drawn = {*self._study.shown_extraction["figures"]} & {one.table for one in self._asked}
        return ["<results>/figures/extraction/record.json"] if drawn else []

    def pairs(self) -> list[str]:
        """Scored pairs of STS of cells that are compared without seeds."""
        in_grids = (one for one in self._asked if one.table in self._study.grids)
        return [*dict.fromkeys(file for one in in_grids for file in self._pairs(one))]

    def _pairs(self, compared: Comparison) -> Iterator[str]:
        grid, runs = self._study.grids[compared.table], self._study.runs_of(compared.table)
        if all(runs[run].fixed for run, _ in compared.cells):
            for run, heading in compared.cells:
                suites = {column["suite"] for column in scored_columns(grid["columns"], heading)}
                for suite in sorted(suites & {*grid["suites"].get("sts", [])}):
                    pattern = f"<results>/scores/sts/{suite}/{{run}}/seed{{seed}}.pairs.parquet"
                    yield from self._study.files(pattern, {run: runs[run]})


class Models(Lookups):
    """Lookups of the rules of finished models: their cards, and what must be made before their weights go."""

    def modules(self, wildcards: Wildcards) -> list[str]:
        """What a card quotes: the method's module."""
        return [f"methods.{self._study.settings[wildcards.run]['method']['module']}"]

    def card(self, wildcards: Wildcards) -> str:
        """Encoders, data and settings of a run, as ``reporting.model_card.Config`` reads them."""
        run, settings = self._study.runs[wildcards.run], self._study.settings[wildcards.run]
        published, corpora = self._study.behind([run.encoder, run.teacher])
        corpora |= {run.corpus} if run.corpus else set()
        about = {
            name: self._config["datasets"][name]["about"]
            for name in datasets_of_corpora(self._config, corpora)
        }
        return as_json(
            {
                "encoders": [self._encoder(name) for name in sorted(published)],
                "data": [
                    {"name": name, **{key: said[key] for key in ("licence", "origin", "citation")}}
                    for name, said in about.items()
                ],
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
        found: dict[str, set[str]] = defaultdict(set)
        for (run, seed), files in self._study.scores.items():
            found[self._study.model(run, seed)].update(files)
        for model, file in (*self._runs_of_runs(), *Figures(self._study).read_models()):
            found[model].add(file)
        return found

    def _runs_of_runs(self) -> Iterator[tuple[str, str]]:
        """Runs that start from finished ones, and vectors of teachers."""
        for name, run in self._study.runs.items():
            for seed in run.seeds:
                vectors = f"<results>/teachers/{run.teacher}/{run.corpus}/seed{seed}.parquet"
                made = {run.encoder: self._study.model(name, seed), run.teacher: vectors}
                for encoder in filter(None, made):
                    for model in self._study.models(encoder, str(seed)):
                        yield model, made[encoder]
