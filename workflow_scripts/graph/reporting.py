"""Contents of the page and cards, the study's claims, and the files to be made before weights are deleted."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property

from workflow_scripts.extraction.blocks import datasets_of as extraction_datasets
from workflow_scripts.graph.figures import Figures
from workflow_scripts.graph.references import called, called_runs, corpus_datasets
from workflow_scripts.graph.slices import Config, as_json
from workflow_scripts.graph.study import Run, Study
from workflow_scripts.settings.claims import FOLDER, Claim, Comparison, claims_in
from workflow_scripts.settings.extraction import tables_of
from workflow_scripts.settings.grids import scored_columns


class Page:
    """The page about a study."""

    def __init__(self, study: Study) -> None:
        self._study, self._config = study, study.config
        self._runs = {name: run for grid in study.grids.values() for name, run in grid.runs.items()}

    @cached_property
    def datasets(self) -> list[str]:
        """All datasets that the study reads."""
        trained = corpus_datasets(self._config, self._study.read_corpora)
        extracted = extraction_datasets(self._config) if any(self._study.shown_extraction.values()) else []
        return sorted({*trained, *self._study.evaluation_sets, *extracted})

    def reads(self) -> dict[str, list[str]]:
        """Files that it reads besides tables, figures and claims, by role."""
        study, corpora = self._study, self._study.read_corpora
        trips = [corpus for corpus in corpora if "round_trip" in self._config["corpora"][corpus]]
        history = "<results>/runs/{run}/seed{seed}/history.parquet"
        trained = (study.runs[name] for name, run in self._runs.items() if run.corpus)
        overlaps = corpora if self._config["contamination"] else []
        return {
            "datasets": _paths("datasets/{}.parquet", self.datasets),
            "dropped": _paths("datasets/{}.dropped.parquet", self.datasets),
            "train": _paths("corpora/{}/train.parquet", corpora),
            "lost": _paths("corpora/{}/dropped.parquet", trips),
            "words": _paths("corpora/{}/words.parquet", corpora),
            "contamination": _paths("contamination/{}.parquet", overlaps),
            "exemplars": _paths("exemplars/{}.parquet", study.asked_pools),
            "development": sorted({run.dev for run in study.trained.values()}),
            "histories": [file for run in trained for file in run.files(history)],
        }

    def settings(self) -> str:
        """Its settings, and the names of what it shows."""
        names = self._config["names"]
        shown = {
            "runs": called_runs(names, {name: run.asked for name, run in self._runs.items()}),
            "datasets": called(names, "datasets", self.datasets),
            "corpora": called(names, "corpora", self._study.read_corpora),
        }
        parts = {key: self._config[key] for key in ("name", "experiments")}
        return as_json(parts | {"page": self._config["report"]["page"], "called": shown})


def _paths(pattern: str, names: Iterable[str]) -> list[str]:
    return [f"<results>/{pattern.format(name)}" for name in names]


class Claims:
    """The claims of papers that a study is held to.

    Nothing is made for a claim: it is compared where the study makes the table that it names. Tables hold the values
    behind their means; the rule reads scored pairs too, where neither side has seeds.
    """

    def __init__(self, study: Study) -> None:
        papers, scale = (study.config["claims"][key] for key in ("papers", "scale"))
        self._study, self._scale = study, scale
        self.verdicts = ["<results>/claims.parquet"] if papers else []
        self._held = [
            Claim.parse(row, place)
            for paper in papers
            for place, row in claims_in(study.root / FOLDER, paper, scale).items()
        ]
        shown = study.shown_extraction
        self._drawn = {*shown["figures"]} & {*tables_of(study.config["extraction"])}
        made = {*study.grids, *shown["tables"], *self._drawn}
        asked = (claim.compared for claim in self._held if isinstance(claim.compared, Comparison))
        self._asked = [one for one in asked if one.table in made]

    def settings(self) -> str:
        """The claims, what each is compared by at the study's scale, and how differences are tested."""
        held = {"claims": [claim.model_dump() for claim in self._held], "scale": self._scale}
        return as_json({"held": held, "significance": self._study.config["significance"]})

    def reads(self) -> dict[str, list[str]]:
        """Tables that claims are compared in, the record of figures that are such tables, and scored pairs, by role."""
        tables = dict.fromkeys(one.table for one in self._asked)
        drawn = ["<results>/figures/extraction/record.json"] if self._drawn & tables.keys() else []
        in_grids = (one for one in self._asked if one.table in self._study.grids)
        return {
            "tables": _paths("tables/{}.parquet", (name for name in tables if name not in self._drawn)),
            "figures": drawn,
            "pairs": [*dict.fromkeys(file for one in in_grids for file in self._pairs(one))],
        }

    def _pairs(self, compared: Comparison) -> Iterator[str]:
        """Scored pairs of STS of cells that are compared without seeds."""
        grid = self._study.grids[compared.table]
        if all(grid.runs[run].asked.fixed for run, _ in compared.cells):
            for run, heading in compared.cells:
                columns = scored_columns(grid.block["columns"], heading)
                suites = {column["suite"] for column in columns} & {*grid.block["suites"].get("sts", [])}
                for suite in sorted(suites):
                    path = f"<results>/scores/sts/{suite}/{{run}}/seed{{seed}}.pairs.parquet"
                    yield from grid.runs[run].files(path)


def card(run: Run) -> str:
    """Encoders, data and settings of a run, as the template of cards reads them."""
    config = run.study.config
    published, corpora = run.study.behind([run.encoder, run.teacher])
    names = corpus_datasets(config, corpora | ({run.corpus} if run.corpus else set()))
    about = {name: config["datasets"][name]["about"] for name in names}
    return as_json(
        {
            "encoders": [_encoder(name, config["encoders"][name]["fetch"]) for name in sorted(published)],
            "data": [
                {"name": name, **{key: said[key] for key in ("licence", "origin", "citation")}}
                for name, said in about.items()
            ],
            "method": run.method,
            "training": run.training if run.corpus else None,
        }
    )


def _encoder(name: str, fetch: Config) -> Config:
    first, *_ = fetch["sources"]
    hub = next((source["repository"] for source in fetch["sources"] if source["kind"] == "hub"), None)
    origin = hub or first.get("package") or first.get("path")
    return {"name": name, "licence": fetch["licence"], "origin": origin, "hub": hub}


def model_readers(study: Study, figures: Figures) -> dict[str, list[str]]:
    """Run to everything that is made from its models and from nothing nearer to them."""
    found = defaultdict(set, {name: {*run.scores} for name, run in study.runs.items()})
    vectors = "<results>/teachers/{teacher}/{corpus}/seed{seed}.parquet"
    for run in study.runs.values():
        made = {run.encoder: run.models}
        if run.teacher:
            path = vectors.replace("{teacher}", run.teacher).replace("{corpus}", str(run.corpus))
            made[run.teacher] = run.files(path)
        for encoder, files in made.items():
            for member in study.encoders[encoder].members():
                found[member].update(files)
    for name, record in figures.read_models():
        found[name].add(record)
    return {name: sorted(files) for name, files in found.items()}
