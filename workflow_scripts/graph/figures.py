"""Which figures a study has and what each of them reads, asked while Snakemake builds the job graph.

A figure says so in its settings (``settings.figures.Needs``).
"""

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from workflow_scripts.errors import one_line_errors, refuse
from workflow_scripts.extraction.blocks import files_of as extraction_files
from workflow_scripts.extraction.blocks import names as extraction_names
from workflow_scripts.graph.references import base_of, called, called_runs, tasks_in
from workflow_scripts.graph.resources import missing
from workflow_scripts.graph.runs import EXTRACTION, Run, paper_of
from workflow_scripts.graph.slices import Config, Wildcards, as_json, at
from workflow_scripts.graph.study import Lookups, Study
from workflow_scripts.settings.figures import FIGURES, Needs


def without_figures(grid: Mapping[str, Any]) -> Config:
    """A grid without the blocks that ask for figures, which is what its table reads."""
    return {key: value for key, value in grid.items() if key not in FIGURES}


class Figures(Lookups):
    """The figures of a study: those of its experiments, and those of the extraction study."""

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self._config: Config = {**study.config, "grids": study.grids}

    @cached_property
    def experiments(self) -> list[str]:
        """Those that have figures."""
        return [name for name in (*self._study.grids, EXTRACTION) if self.of(name)]

    def of(self, experiment: str) -> list[str]:
        """Names of the figures that an experiment, or the extraction study, has."""
        if experiment == EXTRACTION:
            return self._study.shown_extraction["figures"]
        ours = {name: figure.needs for name, figure in FIGURES.items() if not figure.needs.of_extraction}
        return sorted(name for name, needs in ours.items() if self._has(experiment, needs))

    def drawn(self, paper: str | None = None) -> list[str]:
        """The records of the figures of one paper's experiments, or of all: each vouches for a folder of pictures."""
        return [_drawn(name) for name in self.experiments if paper in (None, paper_of(name))]

    def read_models(self) -> Iterator[tuple[str, str]]:
        """Each model that a picture is drawn from, and the record of the picture's experiment."""
        for experiment in self._study.grids:
            for figure in self.of(experiment):
                for role, files in self._files_of(experiment, figure).items():
                    if FIGURES[figure].needs.inputs[role].endswith("/model/record.json"):
                        yield from ((file, _drawn(experiment)) for file in files)

    def inputs(self, wildcards: Wildcards) -> dict[str, list[str]]:
        """The files that an experiment's figures read, by the name of the figure and their role in it."""
        return {
            f"{figure}.{role}": files
            for figure in self.of(wildcards.experiment)
            for role, files in self._files_of(wildcards.experiment, figure).items()
        }

    def _files_of(self, experiment: str, figure: str) -> dict[str, list[str]]:
        """The files that a figure reads, by role."""
        needs = FIGURES[self._kind(experiment, figure)].needs
        if experiment == EXTRACTION:
            (role,) = needs.inputs
            block = self._config["extraction"]["figures"][figure]
            return {role: [f"<results>/{file}" for file in extraction_files(self._config, block)]}
        return {role: self._files(pattern, experiment, needs) for role, pattern in needs.inputs.items()}

    def modules(self, wildcards: Wildcards) -> list[str]:
        """Modules that drawing an experiment's figures imports by name: theirs, and readouts of models they load."""
        found: set[str] = set()
        for figure in self.of(wildcards.experiment):
            needs = FIGURES[self._kind(wildcards.experiment, figure)].needs
            loaded = self._runs(wildcards.experiment, needs) if needs.reads_models else ()
            found = found.union([f"figures.{needs.module}"], *map(self._study.loading_modules, loaded))
        return sorted(found)

    def settings(self, wildcards: Wildcards) -> str:
        """The part of the configuration that an experiment's figures read."""
        experiment = wildcards.experiment
        figures = {figure: self._settings(experiment, figure) for figure in self.of(experiment)}
        return as_json({"figures": figures, "style": self._study.config["report"]["figure"]})

    def _settings(self, experiment: str, figure: str) -> Config:
        """What one figure reads."""
        kind = self._kind(experiment, figure)
        needs = FIGURES[kind].needs
        path = (needs.config or "").format(experiment=experiment, figure=figure)
        block = at(self._config, path) if path else {}
        of_extraction = experiment == EXTRACTION
        return {
            "module": kind,
            "runs": [] if of_extraction else self._order(experiment, needs),
            "title": block["title"] if of_extraction else self._study.grids[experiment]["title"],
            "config": block,
            "called": {} if of_extraction else self._called(experiment, needs),
            "names": extraction_names(self._config, block) if of_extraction else {},
        }

    def caption_files(self) -> list[str]:
        """Captions of all figures of the study, each once.

        Ends the process with a line for each that is not there.
        """
        drawn = {self._kind(name, figure) for name in self.experiments for figure in self.of(name)}
        captions = self._study.root / "resources/captions"
        with one_line_errors():
            refuse(
                line for kind in sorted(drawn) for line in missing(captions, "rst", kind, f"figure {kind}")
            )
        return [f"resources/captions/{kind}.rst" for kind in sorted(drawn)]

    def _kind(self, experiment: str, figure: str) -> str:
        """Which figure of ``settings.figures`` it is."""
        if experiment != EXTRACTION:
            return figure
        kind: str = self._config["extraction"]["figures"][figure]["kind"]
        return kind

    def _order(self, experiment: str, needs: Needs) -> list[str]:
        """Runs that a figure reads, in their order, which Snakemake does not compare among inputs."""
        reads_runs = any("{run}" in pattern for pattern in needs.inputs.values())
        return list(self._runs(experiment, needs)) if reads_runs else []

    def _called(self, experiment: str, needs: Needs) -> Config:
        """Names of what a figure shows: its runs, and the data that its inputs were measured on."""
        names, read = self._study.config["names"], " ".join(needs.inputs.values())
        runs = self._runs(experiment, needs) if read else {}
        shown: Config = {"runs": called_runs(names, runs)}
        if "/tables/" in read or "/scores/" in read:
            tasks = self._study.tasks_of(experiment)
            words = called(names, "datasets", tasks.values())
            shown["datasets"] = {task: words[name] for task, name in tasks.items() if name in words}
        if "/history." in read:
            chosen_by = [self._study.config["development"]["dataset"]]
            shown["datasets"] = called(names, "datasets", filter(None, chosen_by))
            shown["corpora"] = called(names, "corpora", self._corpora(experiment))
        return shown

    def _has(self, experiment: str, needs: Needs) -> bool:
        """Whether an experiment holds all that a figure reads."""
        if needs.config and not self._setting(needs.config, experiment):
            return False
        return all(self._files(pattern, experiment, needs) for pattern in needs.inputs.values())

    def _files(self, pattern: str, experiment: str, needs: Needs) -> list[str]:
        """Files of one input, suite by suite, run by run and seed by seed."""
        patterns = [pattern.replace("{experiment}", experiment)]
        if "{corpus}" in pattern:
            corpora = {base_of(self._study.config, corpus): None for corpus in self._corpora(experiment)}
            patterns = [path.replace("{corpus}", corpus) for path in patterns for corpus in corpora]
        if kind := re.search(r"/(\w+)/\{suite\}", pattern):
            suites = self._suites(experiment, kind[1], needs)
            patterns = [path.replace("{suite}", suite) for path in patterns for suite in suites]
        if "{run}" not in pattern:
            return patterns
        runs = self._runs(experiment, needs)
        return [file for path in patterns for file in self._study.files(path, runs)]

    def _corpora(self, experiment: str) -> list[str]:
        """Corpora that the runs of an experiment train on."""
        return [run.corpus for run in self._study.runs_of(experiment).values() if run.corpus]

    def _suites(self, experiment: str, kind: str, needs: Needs) -> list[str]:
        """Suites of one kind that an experiment evaluates on and a figure reads."""
        suites: list[str] = self._study.grids[experiment]["suites"].get(kind, [])
        if not needs.task:
            return suites
        task, blocks = self._setting(needs.task, experiment), self._study.config["suites"][kind]
        return [suite for suite in suites if task in tasks_in(blocks[suite])]

    def _runs(self, experiment: str, needs: Needs) -> dict[str, Run]:
        """Runs of an experiment that a figure reads."""
        runs = self._study.runs_of(experiment)
        if needs.runs:
            runs = {name: runs[name] for name in self._setting(needs.runs, experiment)}
        if needs.trained:
            runs = {name: run for name, run in runs.items() if run.corpus}
        return {name: run for name, run in runs.items() if self._is_of(name, needs.method)}

    def _is_of(self, run: str, wanted: Mapping[str, str]) -> bool:
        """Whether a run's method has the settings that are wanted."""
        return all(
            fnmatchcase(str(_at(self._study.settings[run]["method"], key)), one)
            for key, one in wanted.items()
        )

    def _setting(self, path: str, experiment: str) -> Any:
        """The setting at a path of ``Needs``; None if it is not there."""
        return _at(self._config, path.format(experiment=experiment))


def _at(block: Any, path: str) -> Any:
    """The value at a dotted path; None if it is not there."""
    for key in path.split("."):
        block = block.get(key) if isinstance(block, Mapping) else None
    return block


def _drawn(experiment: str) -> str:
    return f"<results>/figures/{experiment}/record.json"
