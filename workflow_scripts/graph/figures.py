"""Which figures a study has and what each of them reads, asked while Snakemake builds the job graph.

Figures declare what they need (``figures.base.Declaration``).
"""

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

from workflow_scripts.extraction.blocks import files_of as extraction_files
from workflow_scripts.extraction.blocks import names as extraction_names
from workflow_scripts.figures.base import MODELS, Declaration, all_figures
from workflow_scripts.graph.references import base_of, called, called_runs, tasks_in
from workflow_scripts.graph.slices import Config, Wildcards, as_json
from workflow_scripts.graph.study import Lookups
from workflow_scripts.settings.grids import EXTRACTION, Run, paper_of


def without_figures(grid: Mapping[str, Any]) -> Config:
    """A grid without the blocks that ask for figures, which is what its table reads."""
    return {key: value for key, value in grid.items() if key not in all_figures()}


class _Figure(NamedTuple):
    """A figure of an experiment."""

    declared: Declaration
    block: Config
    """Its settings."""
    runs: dict[str, Run]
    """Runs that it reads."""
    files: dict[str, list[str]]
    """Files that it reads, by role."""


class Figures(Lookups):
    """The figures of a study: those of its experiments, and those of the extraction study."""

    @cached_property
    def _figures(self) -> dict[str, dict[str, _Figure]]:
        """All figures, by experiment and name."""
        declared = [one for one in all_figures().values() if not one.of_extraction]
        found = {
            experiment: {
                one.name: figure for one in declared if (figure := self._of_grid(experiment, one)) is not None
            }
            for experiment in self._study.grids
        }
        shown = self._study.shown_extraction["figures"]
        return found | {EXTRACTION: {name: self._of_extraction(name) for name in shown}}

    def _of_grid(self, experiment: str, declared: Declaration) -> _Figure | None:
        """A figure of an experiment; None unless its block is there and each of its inputs has a file."""
        grids = {experiment: self._study.grids[experiment]}
        block = _at(self._config | {"grids": grids}, (declared.block or "").format(experiment=experiment))
        if declared.block and not block:
            return None
        runs = {
            name: run
            for name, run in self._study.runs_of(experiment).items()
            if self._is_read(name, run, declared)
        }
        if "runs" in declared.settings.model_fields:
            runs = {name: runs[name] for name in block["runs"]}
        files = {
            role: self._files(pattern.replace("{experiment}", experiment), experiment, runs, block or {})
            for role, pattern in declared.reads.items()
        }
        return _Figure(declared, block or {}, runs, files) if all(files.values()) else None

    def _of_extraction(self, name: str) -> _Figure:
        """A figure of the extraction study."""
        block = self._config["extraction"]["figures"][name]
        declared = all_figures()[block["kind"]]
        (role,) = declared.reads
        files = [f"<results>/{file}" for file in extraction_files(self._config, block)]
        return _Figure(declared, block, {}, {role: files})

    def _is_read(self, name: str, run: Run, declared: Declaration) -> bool:
        """Whether a figure reads a run, as far as its training and method decide."""
        method = self._study.settings[name]["method"]
        fits = (fnmatchcase(str(_at(method, key)), wanted) for key, wanted in declared.method.items())
        return bool(run.corpus or not declared.trained) and all(fits)

    def _files(self, pattern: str, experiment: str, runs: Mapping[str, Run], block: Config) -> list[str]:
        """Files of one input, corpus by corpus, suite by suite, run by run and seed by seed."""
        corpora, suites = [""], [""]
        if "{corpus}" in pattern:
            corpora = list(dict.fromkeys(base_of(self._config, name) for name in self._corpora(experiment)))
        if kind := re.search(r"/(\w+)/\{suite\}", pattern):
            suites = self._study.grids[experiment]["suites"].get(kind[1], [])
            if "task" in block:
                blocks = self._config["suites"][kind[1]]
                suites = [suite for suite in suites if block["task"] in tasks_in(blocks[suite])]
        paths = [
            pattern.replace("{corpus}", corpus).replace("{suite}", suite)
            for corpus, suite in product(corpora, suites)
        ]
        return (
            [file for path in paths for file in self._study.files(path, runs)]
            if "{run}" in pattern
            else paths
        )

    def _corpora(self, experiment: str) -> list[str]:
        """Corpora that the runs of an experiment train on."""
        return [run.corpus for run in self._study.runs_of(experiment).values() if run.corpus]

    @cached_property
    def experiments(self) -> list[str]:
        """Experiments with at least one figure."""
        return [name for name, figures in self._figures.items() if figures]

    def of(self, experiment: str) -> list[str]:
        """Names of the figures that an experiment, or the extraction study, has."""
        return list(self._figures[experiment])

    def drawn(self, paper: str | None = None) -> list[str]:
        """The records of the figures of one paper's experiments, or of all: each vouches for a folder of pictures."""
        return [_drawn(name) for name in self.experiments if paper in (None, paper_of(name))]

    def read_models(self) -> Iterator[tuple[str, str]]:
        """Each model that a picture is drawn from, and the record of the picture's experiment."""
        for experiment, figures in self._figures.items():
            for figure in figures.values():
                for role, pattern in figure.declared.reads.items():
                    if pattern == MODELS:
                        yield from ((file, _drawn(experiment)) for file in figure.files[role])

    def inputs(self, wildcards: Wildcards) -> dict[str, list[str]]:
        """The files that an experiment's figures read, by the name of the figure and their role in it."""
        return {
            f"{name}.{role}": files
            for name, figure in self._figures[wildcards.experiment].items()
            for role, files in figure.files.items()
        }

    def modules(self, wildcards: Wildcards) -> list[str]:
        """Modules that drawing an experiment's figures imports by name: theirs, and readouts of models they load."""
        found: set[str] = set()
        for figure in self._figures[wildcards.experiment].values():
            loaded = figure.runs if MODELS in figure.declared.reads.values() else ()
            found = found.union(
                [f"figures.{figure.declared.module}"], *map(self._study.loading_modules, loaded)
            )
        return sorted(found)

    def settings(self, wildcards: Wildcards) -> str:
        """The part of the configuration that an experiment's figures read, as JSON."""
        experiment = wildcards.experiment
        figures = {
            name: self._settings(experiment, figure) for name, figure in self._figures[experiment].items()
        }
        return as_json({"figures": figures, "style": self._config["report"]["figure"]})

    def _settings(self, experiment: str, figure: _Figure) -> Config:
        """The settings of one figure; Snakemake does not compare the order of inputs, so runs are among them."""
        declared, block, of_extraction = figure.declared, figure.block, experiment == EXTRACTION
        reads_runs = any("{run}" in pattern for pattern in declared.reads.values())
        return {
            "module": declared.module,
            "kind": declared.name,
            "caption": declared.caption,
            "title": block["title"] if of_extraction else self._study.grids[experiment]["title"],
            "config": block,
            "runs": list(figure.runs) if reads_runs else [],
            "called": {} if of_extraction else self._called(experiment, figure),
            "names": extraction_names(self._config, block) if of_extraction else {},
        }

    def _called(self, experiment: str, figure: _Figure) -> Config:
        """Names of what a figure shows: its runs, and the data that its inputs were measured on."""
        names, read = self._config["names"], " ".join(figure.declared.reads.values())
        shown: Config = {"runs": called_runs(names, figure.runs if read else {})}
        if "/tables/" in read or "/scores/" in read:
            tasks = self._study.tasks_of(experiment)
            words = called(names, "datasets", tasks.values())
            shown["datasets"] = {task: words[name] for task, name in tasks.items() if name in words}
        if "/history." in read:
            chosen_by = [self._config["development"]["dataset"]]
            shown["datasets"] = called(names, "datasets", filter(None, chosen_by))
            shown["corpora"] = called(names, "corpora", self._corpora(experiment))
        return shown


def _at(block: Any, path: str) -> Any:
    """The value at a dotted path; None if it is not there."""
    for key in path.split("."):
        block = block.get(key) if isinstance(block, Mapping) else None
    return block


def _drawn(experiment: str) -> str:
    return f"<results>/figures/{experiment}/record.json"
