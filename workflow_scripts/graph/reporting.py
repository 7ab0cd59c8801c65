"""Contents of the page and cards, and the study's claims."""

from collections.abc import Iterable, Iterator
from functools import cached_property

from workflow_scripts.graph.blocks import datasets_of as extraction_datasets
from workflow_scripts.graph.blocks import tables_of
from workflow_scripts.graph.references import called, called_runs, corpus_datasets
from workflow_scripts.graph.slices import Config, as_json
from workflow_scripts.graph.study import Run, Study
from workflow_scripts.settings.claims import FOLDER, Claim, Comparison, claims_in
from workflow_scripts.settings.corpora import RoundTripCorpus
from workflow_scripts.settings.encoders import EncoderBlock, HubEncoder
from workflow_scripts.settings.grids import scored_columns


class Page:
    """The page about a study."""

    def __init__(self, study: Study) -> None:
        self._study, self._settings = study, study.settings
        self._runs = {name: run for grid in study.grids.values() for name, run in grid.runs.items()}

    @cached_property
    def datasets(self) -> list[str]:
        """All datasets that the study reads."""
        trained = corpus_datasets(self._settings, self._study.read_corpora)
        extracted = extraction_datasets(self._settings) if self._study.shows_extraction else []
        return sorted({*trained, *self._study.evaluation_sets, *extracted})

    def reads(self) -> dict[str, list[str]]:
        """Files that it reads besides tables, figures and claims, by role."""
        study, corpora = self._study, self._study.read_corpora
        trips = [name for name in corpora if isinstance(self._settings.corpora[name], RoundTripCorpus)]
        history = "<results>/runs/{run}/seed{seed}/history.parquet"
        trained = (study.runs[name] for name, run in self._runs.items() if run.corpus)
        overlaps = corpora if self._settings.contamination else []
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
        words = self._settings.names
        shown = {
            "runs": called_runs(words, {name: run.asked for name, run in self._runs.items()}),
            "datasets": called(words.datasets, self.datasets),
            "corpora": called(words.corpora, self._study.read_corpora),
        }
        parts = {"name": self._settings.name, "experiments": self._settings.experiments}
        return as_json(parts | {"page": self._settings.report.page, "called": shown})


def _paths(pattern: str, names: Iterable[str]) -> list[str]:
    return [f"<results>/{pattern.format(name)}" for name in names]


class Claims:
    """The claims of papers that a study is held to.

    Nothing is made for a claim: it is compared where the study makes the table that it names. Tables hold the values
    behind their means; the rule reads scored pairs too, where neither side has seeds.
    """

    def __init__(self, study: Study) -> None:
        asked = study.settings.claims
        self._study, self._scale = study, asked.scale
        self.verdicts = ["<results>/claims.parquet"] if asked.papers else []
        self._held = [
            Claim.parse(row, place)
            for paper in asked.papers
            for place, row in claims_in(study.root / FOLDER, paper, asked.scale).items()
        ]
        shown = study.shown_extraction
        self._drawn = {*shown.figures} & {*tables_of(study.settings.extraction)}
        made = {*study.grids, *shown.tables, *self._drawn}
        compared = (claim.compared for claim in self._held)
        self._asked = [one for one in compared if isinstance(one, Comparison) and one.table in made]

    def settings(self) -> str:
        """The claims, what each is compared by at the study's scale, and how differences are tested."""
        held = {"claims": self._held, "scale": self._scale}
        return as_json({"held": held, "significance": self._study.settings.significance})

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
                columns = scored_columns([column.model_dump() for column in grid.columns], heading)
                suites = {column["suite"] for column in columns} & {*grid.block.suites.sts}
                for suite in sorted(suites):
                    path = f"<results>/scores/sts/{suite}/{{run}}/seed{{seed}}.pairs.parquet"
                    yield from grid.runs[run].files(path)


def card(run: Run) -> str:
    """Encoders, data and settings of a run, as the template of cards reads them."""
    settings = run.study.settings
    published, corpora = run.study.behind([run.encoder, run.teacher])
    names = corpus_datasets(settings, corpora | ({run.corpus} if run.corpus else set()))
    about = {name: settings.datasets[name].about for name in names}
    return as_json(
        {
            "encoders": [_encoder(name, settings.fetched(name)) for name in sorted(published)],
            "data": [
                {"name": name, "licence": said.licence, "origin": said.origin, "citation": said.citation}
                for name, said in about.items()
            ],
            "method": run.method,
            "training": run.training if run.corpus else None,
        }
    )


def _encoder(name: str, fetch: EncoderBlock) -> Config:
    first = fetch.sources[0]
    hub = next((source.repository for source in fetch.sources if isinstance(source, HubEncoder)), None)
    origin = hub or getattr(first, "package", None) or getattr(first, "path", None)
    return {"name": name, "licence": fetch.licence, "origin": origin, "hub": hub}
