"""A study as its graph sees it: the checked configuration, the grids it asks for, and every run of theirs."""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from pathlib import Path

from workflow_scripts.errors import one_line_errors, refuse
from workflow_scripts.graph.checks import checked, study_findings
from workflow_scripts.graph.references import base_of, encoders_reached, tasks_in
from workflow_scripts.graph.slices import Config, Wildcards
from workflow_scripts.methods import readout_modules
from workflow_scripts.provenance.closure import code_files
from workflow_scripts.settings.grids import (
    EXTRACTION,
    Run,
    all_runs,
    members_of,
    one_column_a_task,
    run_settings,
    runs_of,
)

ENSEMBLE = "models.ensemble"


@dataclass(frozen=True)
class Study:
    """What all lookups of the graph start from; nothing in it changes once it is made."""

    config: Config
    grids: dict[str, Config]
    runs: dict[str, Run]
    root: Path
    """Folder of the Snakefile."""

    @property
    def folder(self) -> str:
        """Folder of the study's results below the working directory."""
        return f"results/{self.config['name']}"

    @property
    def shown_extraction(self) -> dict[str, list[str]]:
        """Tables and figures of the extraction study; none unless the experiments name it."""
        shown: dict[str, list[str]] = self.config["extraction"]["show"]
        return shown if EXTRACTION in self.config["experiments"] else {part: [] for part in shown}

    @cached_property
    def settings(self) -> dict[str, Config]:
        """Settings of every run: ``method``, ``training`` and ``development``; shared, so not to be changed."""
        return {name: run_settings(self.config, run) for name, run in self.runs.items()}

    @cached_property
    def trained(self) -> dict[str, Run]:
        """Runs that are trained."""
        return {name: run for name, run in self.runs.items() if run.corpus}

    @cached_property
    def joined(self) -> dict[str, Run]:
        """Runs that are made of others and not trained."""
        return {name: run for name, run in self.runs.items() if not run.corpus and self.members(run.encoder)}

    @cached_property
    def frozen(self) -> dict[str, Run]:
        """Runs that read an encoder as it is."""
        return {
            name: run for name, run in self.runs.items() if not run.corpus and not self.members(run.encoder)
        }

    def encoders(self, kind: str) -> list[str]:
        """Encoders of one kind: ``fetch``, ``adapt``, or ``runs`` for those that consist of runs."""
        return [name for name, block in self.config["encoders"].items() if kind in block]

    def members(self, encoder: str, seeds: Sequence[int] = (0,)) -> dict[str, Run]:
        """The runs that an encoder consists of, in order; none of one that is fetched or adapted."""
        return members_of(self.config["encoders"], encoder, seeds)

    def behind(self, encoders: Iterable[str | None]) -> tuple[set[str], set[str]]:
        """Encoders that are fetched, and corpora, that encoders come from: by adaptation, runs or teachers of runs."""
        blocks = self.config["encoders"]
        reached = encoders_reached(blocks, filter(None, encoders))
        adapted = {blocks[name]["adapt"]["corpus"] for name in reached if "adapt" in blocks[name]}
        trained = {run.corpus for name in reached for run in self.members(name).values() if run.corpus}
        return {name for name in reached if "fetch" in blocks[name]}, adapted | trained

    def models(self, encoder: str, seed: str) -> list[str]:
        """Models of the runs that an encoder consists of, if it does, each by the seed that goes with ``seed``."""
        members = self.members(encoder, [int(seed)])
        return [self.model(name, self.runs[name].seed_for(int(seed))) for name in members]

    def model(self, run: str, seed: int) -> str:
        """The record of a run's model folder, which vouches for the folder."""
        return f"<results>/runs/{run}/seed{seed}/model/record.json"

    def files(self, pattern: str, runs: Mapping[str, Run]) -> list[str]:
        """``pattern`` for every run and seed; once, if it names neither."""
        filled = (pattern.format(run=name, seed=seed) for name, run in runs.items() for seed in run.seeds)
        return list(dict.fromkeys(filled))

    @cached_property
    def scores(self) -> dict[tuple[str, int], list[str]]:
        """Run and seed to files of scores: every suite of the grids that ask for them."""
        found: dict[tuple[str, int], dict[str, None]] = defaultdict(dict)
        for experiment, grid in self.grids.items():
            asked = [(kind, suite) for kind, suites in grid["suites"].items() for suite in suites]
            for name, run in self.runs_of(experiment).items():
                for (kind, suite), seed in product(asked, run.seeds):
                    found[name, seed][f"<results>/scores/{kind}/{suite}/{name}/seed{seed}.parquet"] = None
        return {key: sorted(files) for key, files in found.items()}

    def scores_of(self, wildcards: Wildcards) -> list[str]:
        """Files of all scores of a run, of every seed."""
        return sorted(
            file for (run, _), files in self.scores.items() if run == wildcards.run for file in files
        )

    def history(self, wildcards: Wildcards) -> list[str]:
        """The training history of a run; none where it is not trained."""
        trained = wildcards.run in self.trained
        return [f"<results>/runs/{wildcards.run}/seed{wildcards.seed}/history.parquet"] if trained else []

    @cached_property
    def loading_modules(self) -> Callable[[str], list[str]]:
        """Modules that loading a run's model imports by name, found once: every evaluation of the run asks."""
        return cache(self._loading_modules)

    def _loading_modules(self, run: str) -> list[str]:
        """A run that is made of others needs their modules."""
        method = self.settings[run]["method"]
        behind = self.modules_behind(self.runs[run].encoder)
        several = {ENSEMBLE} & {*behind, *_ensemble_module(method["module"])}
        return sorted({*(readout_modules(method) or behind), *several})

    def modules_behind(self, encoder: str) -> list[str]:
        """Modules that loading the runs of an encoder imports by name."""
        return sorted({module for run in self.members(encoder) for module in self.loading_modules(run)})

    @cached_property
    def runs_of(self) -> Callable[[str], dict[str, Run]]:
        """Every run that one experiment asks for; shared, so not to be changed."""
        return cache(lambda experiment: runs_of(self.grids[experiment]))

    @cached_property
    def read_corpora(self) -> list[str]:
        """Corpora that runs or their encoders train on."""
        encoders = {encoder for run in self.runs.values() for encoder in (run.encoder, run.teacher)}
        return sorted({run.corpus for run in self.runs.values() if run.corpus} | self.behind(encoders)[1])

    @cached_property
    def asked_pools(self) -> list[str]:
        """Pools of exemplars that the study makes, for its runs or without any."""
        read = {settings["method"].get("pool") for settings in self.settings.values()}
        return sorted({*self.config["exemplar_pools"], *read} - {None})

    @cached_property
    def evaluation_sets(self) -> list[str]:
        """Datasets that the study evaluates on, the development set among them."""
        evaluated = {name for experiment in self.grids for name in self.tasks_of(experiment).values()}
        development = {self.config["development"]["dataset"]} if self.trained else set()
        return sorted(evaluated | (development - {None}))

    def tasks_of(self, experiment: str) -> dict[str, str]:
        """Tasks that an experiment evaluates on, each with the dataset that it reads."""
        return {
            task: dataset
            for kind, suites in self.grids[experiment]["suites"].items()
            for suite in suites
            for task, dataset in tasks_in(self.config["suites"][kind][suite]).items()
        }

    def development_set(self, run: Run) -> str:
        """Pairs by which a run chooses its checkpoint: a dataset's, or held-out text of what its corpus is made of."""
        if dataset := self.config["development"]["dataset"]:
            return f"<results>/datasets/{dataset}.parquet"
        return f"<results>/corpora/{base_of(self.config, str(run.corpus))}/dev.parquet"


class Lookups:
    """What the rules of one stage look up in a study, most of it by a job's wildcards."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._config = study.config


def open_study(config: Config, root: Path) -> Study:
    """Check a configuration and expand its grids; ends the process with a line for each thing that is wrong.

    Args:
        config: As ``configuration.load_config`` merges it.
        root: Folder of the Snakefile.
    """
    with one_line_errors():
        grids = checked(config, root / "config")
        refuse(study_findings(config, grids, root, data_root_of(config)))
        plain = {
            name: one_column_a_task(grid) | {"seeds": sorted(grid["seeds"])} for name, grid in grids.items()
        }
        study = Study(config, plain, all_runs(plain, config["encoders"]), root)
    os.environ.update(_environment(config))
    os.environ.setdefault("SEMBLANCE_ANSWERS", config["answers"])
    os.environ.setdefault("SEMBLANCE_RUN", f"{os.getpid()} {time.time_ns()}")  # jobs inherit it
    return study


def data_root_of(config: Config) -> Path | None:
    """The folder of local data: the setting, or else the environment variable SEMBLANCE_DATA; ~ is a home folder."""
    root = config["data_root"] or os.environ.get("SEMBLANCE_DATA")
    return Path(root).expanduser().absolute() if root else None


def _environment(config: Config) -> dict[str, str]:
    """Settings that reach jobs by their environment, since they decide no result."""
    folder = data_root_of(config)
    root = {"SEMBLANCE_DATA": str(folder)} if folder else {}
    cached = {
        "SEMBLANCE_CACHE": str(Path(config["cache"]).expanduser()),
        "SEMBLANCE_CACHE_GIGABYTES": str(config["cache_gigabytes"]),
    }
    return root | cached | ({"SEMBLANCE_OFFLINE": "1"} if config["offline"] else {})


@cache
def _ensemble_module(method: str) -> list[str]:
    """The module that loads several encoders, where a method makes such a model: its code imports it."""
    loads = f"workflow_scripts/{ENSEMBLE.replace('.', '/')}.py" in code_files(f"methods.{method}")
    return [ENSEMBLE] if loads else []
