"""Figures, page, claims and cards of a study, with their input files.

Figures declare their inputs (``figures.base.Declaration``).
"""

import re
from collections.abc import Iterable
from functools import cached_property
from itertools import product
from typing import NamedTuple

from workflow_scripts.figures.base import MODELS, VERDICTS, Declaration, all_figures
from workflow_scripts.graph.claims import PlannedClaims
from workflow_scripts.graph.extraction import Shown, files_of, names
from workflow_scripts.graph.extraction import datasets_of as extraction_datasets
from workflow_scripts.graph.runs import Grid, PlannedRun
from workflow_scripts.graph.slices import Config, Wildcards, as_json, get_path
from workflow_scripts.graph.study import Study
from workflow_scripts.settings.base import Settings
from workflow_scripts.settings.corpora import RoundTripCorpus
from workflow_scripts.settings.grids import EXTRACTION, paper_of
from workflow_scripts.settings.report import CLAIM_FIGURES
from workflow_scripts.settings.sources import (
    EncoderBlock,
    HubEncoder,
    HubFiles,
    HubSource,
    LocalEncoder,
    PackageEncoder,
)


class _Figure(NamedTuple):
    """A figure of an experiment, with its inputs."""

    declared: Declaration
    block: Settings
    """Settings of the figure."""
    runs: dict[str, PlannedRun]
    """Runs that the figure reads."""
    files: dict[str, list[str]]
    """Files that the figure reads, by role."""


class Figures:
    """The figures of a study: those of its experiments, of the extraction study, and of the papers' claims."""

    def __init__(self, study: Study) -> None:
        self._study, self._settings = study, study.settings

    @cached_property
    def by_experiment(self) -> dict[str, dict[str, _Figure]]:
        """Return all figures, by experiment and name."""
        experiments = {
            name: {
                declared.name: figure
                for declared in all_figures().values()
                if (figure := self._grid_figure(grid, declared))
            }
            for name, grid in self._study.grids.items()
        }
        shown = self._study.shown_extraction.figures
        experiments[EXTRACTION] = {name: self._extraction_figure(name) for name in shown}
        experiments[CLAIM_FIGURES] = self._claim_figures()
        return {experiment: figures for experiment, figures in experiments.items() if figures}

    @property
    def of_experiments(self) -> list[str]:
        """Return the experiments with figures, all of which rule draw_figures draws."""
        return [name for name in self.by_experiment if name != CLAIM_FIGURES]

    def _grid_figure(self, grid: Grid, declared: Declaration) -> _Figure | None:
        """Return a figure of an experiment; None if its settings, or the files of an input, are missing."""
        without = Settings() if declared.settings is Settings else None
        if VERDICTS in declared.reads.values():
            return None
        blocks = self._settings.report.parts() | grid.block.parts()
        block = blocks.get(declared.name, without)
        if block is None:
            return None
        runs = {name: run for name, run in grid.runs.items() if declared.of_run(run)}
        if "runs" in declared.settings.model_fields:
            runs = {name: runs[name] for name in get_path(block, "runs") if name not in grid.gaps}
            block = block.model_copy(update={"runs": [*runs]})
        files = {
            role: self._files(pattern.replace("{experiment}", grid.name), grid, runs.values(), block)
            for role, pattern in declared.reads.items()
        }
        return _Figure(declared, block, runs, files) if all(files.values()) else None

    def _extraction_figure(self, name: str) -> _Figure:
        """Return a figure of the extraction study."""
        block = self._settings.extraction.figures[name]
        declared = all_figures()[block.kind]
        (role,) = declared.reads
        return _Figure(
            declared, block, {}, {role: [f"<results>/{file}" for file in files_of(self._settings, block)]}
        )

    def _claim_figures(self) -> dict[str, _Figure]:
        """Return the figures of the verdicts; none if the study compares no claim."""
        claims = PlannedClaims(self._study)
        tables = claims.tables()
        if not any(tables.values()):
            return {}
        files = {"verdicts": claims.verdicts} | tables
        return {
            name: _Figure(
                declared, Settings(), {}, {role: files[role] for role in declared.reads if files[role]}
            )
            for name, declared in all_figures().items()
            if VERDICTS in declared.reads.values()
        }

    def _files(self, pattern: str, grid: Grid, runs: Iterable[PlannedRun], block: Settings) -> list[str]:
        """Return the files of one input, for each corpus, suite, run and seed."""
        corpora, suites = [""], [""]
        if "{corpus}" in pattern:
            corpora = [self._settings.source_corpus(str(run.corpus)) for run in grid.trained]
        if kind := re.search(r"/(\w+)/\{suite\}", pattern):
            suites = grid.block.suites.get(kind[1], [])
            if task := block.parts().get("task"):
                suites = [name for name in suites if task in self._study.suites[name].block.tasks]
        paths = [
            pattern.replace("{corpus}", corpus).replace("{suite}", suite)
            for corpus, suite in product(dict.fromkeys(corpora), suites)
        ]
        return (
            [file for path in paths for run in runs for file in run.files(path)]
            if "{run}" in pattern
            else paths
        )

    def drawn(self, paper: str | None = None) -> list[str]:
        """Return the records of the figure folders of one paper's experiments, or of all."""
        shown = (name for name in self.by_experiment if paper in (None, paper_of(name)))
        return [f"<results>/figures/{name}/record.json" for name in shown]

    def encoders(self, wildcards: Wildcards) -> list[str]:
        """Return one encoder per size, for the figure job's memory request."""
        grid = self._study.grids.get(wildcards.experiment)
        return grid.encoder_per_size if grid else []

    def inputs(self, wildcards: Wildcards) -> dict[str, list[str]]:
        """Return the files that an experiment's figures read, by figure and role."""
        return {
            f"{name}.{role}": files
            for name, figure in self.by_experiment[wildcards.experiment].items()
            for role, files in figure.files.items()
        }

    def modules(self, wildcards: Wildcards) -> list[str]:
        """Return modules that an experiment's figures import by name: their own, and readouts of loaded models."""
        figures = self.by_experiment[wildcards.experiment].values()
        loaded = (figure.runs.values() for figure in figures if MODELS in figure.declared.reads.values())
        readouts = (module for runs in loaded for run in runs for module in run.loading)
        return sorted({*(f"figures.{figure.declared.module}" for figure in figures), *readouts})

    def settings(self, wildcards: Wildcards) -> str:
        """Return the part of the configuration that an experiment's figures read, as JSON."""
        experiment = wildcards.experiment
        figures = self.by_experiment[experiment].items()
        return as_json(
            {"figures": {name: self._figure_settings(experiment, figure) for name, figure in figures}}
        )

    def _figure_settings(self, experiment: str, figure: _Figure) -> Config:
        """Return the settings of one figure, with its runs in order: Snakemake ignores the order of inputs."""
        declared, block, grid = figure.declared, figure.block, self._study.grids.get(experiment)
        titled = grid.block if grid else block
        reads_runs = any("{run}" in pattern for pattern in declared.reads.values())
        return {
            "module": declared.module,
            "kind": declared.name,
            "caption": declared.caption,
            "title": "" if experiment == CLAIM_FIGURES else get_path(titled, "title"),
            "config": block,
            "runs": list(figure.runs) if reads_runs else [],
            "names": names(self._settings, block) if isinstance(block, Shown) else {},
            "run_names": grid.run_names if grid else {},
        }


class PlannedPage:
    """The page of a study's report."""

    def __init__(self, study: Study) -> None:
        self._study, self._settings = study, study.settings
        self._runs = {name: run for grid in study.grids.values() for name, run in grid.runs.items()}

    @cached_property
    def datasets(self) -> list[str]:
        """Return all datasets that the study reads."""
        trained = self._settings.corpus_datasets(self._study.read_corpora)
        extracted = extraction_datasets(self._settings) if self._study.shows_extraction else []
        return sorted({*trained, *self._study.evaluation_sets, *extracted})

    def reads(self) -> dict[str, list[str]]:
        """Return the files that the page reads besides tables, figures and claims, by role."""
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
            "contamination": _paths("contamination/{}.parquet", overlaps),
            "exemplars": _paths("exemplars/{}.parquet", study.asked_pools),
            "development": sorted({run.dev for run in study.trainings.values()}),
            "histories": [file for run in trained for file in run.files(history)],
        }

    def settings(self) -> str:
        """Return the settings of the page, as JSON."""
        parts = {"name": self._settings.name, "experiments": self._settings.experiments}
        return as_json(parts | {"page": self._settings.report.page})


def _paths(pattern: str, names: Iterable[str]) -> list[str]:
    return [f"<results>/{pattern.format(name)}" for name in names]


def card(run: PlannedRun) -> str:
    """Return encoders, data and settings of a run for the template of model cards, as JSON."""
    settings = run.study.settings
    published, corpora = run.study.behind([run.encoder, run.teacher])
    names = settings.corpus_datasets(corpora | run.read_corpora)
    blocks = {name: settings.datasets[name] for name in names}
    return as_json(
        {
            "encoders": [_encoder(name, settings.fetched(name)) for name in sorted(published)],
            "data": [
                {"name": name, "hub": hub_name(block.sources)}
                | block.about.model_dump(include={"language", "licence", "origin", "citation"})
                for name, block in blocks.items()
            ],
            "method": run.method,
            "training": run.training if run.corpus else None,
        }
    )


def hub_name(sources: Iterable[Settings]) -> str | None:
    """Return the first repository of the Hub among some sources; None without one."""
    named = (source.repository for source in sources if isinstance(source, HubEncoder | HubFiles | HubSource))
    return next(named, None)


def _encoder(name: str, fetch: EncoderBlock) -> Config:
    hub = hub_name(fetch.sources)
    first = fetch.sources[0]
    origin = hub
    if isinstance(first, PackageEncoder):
        origin = hub or first.package
    elif isinstance(first, LocalEncoder):
        origin = hub or first.path
    return {"name": name, "licence": fetch.licence, "origin": origin, "hub": fetch.hub or hub}
