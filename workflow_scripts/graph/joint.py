"""Which suites of a run are evaluated in one process: one of scored pairs, and the geometry that is asked for with it.

Starting PyTorch and loading the model take longer than either, and both mostly read the same sentences.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from workflow_scripts.graph.references import datasets_in
from workflow_scripts.graph.slices import Config, one_of
from workflow_scripts.graph.study import Study
from workflow_scripts.graph.workloads import Suite


class Pair(NamedTuple):
    """Two suites."""

    sts: str
    geometry: str

    @property
    def suites(self) -> tuple[Suite, Suite]:
        """Both with their kinds."""
        return ("sts", self.sts), ("geometry", self.geometry)


Seeds = tuple[int, ...]


def joint_suites(study: Study) -> dict[Pair, dict[str, Seeds]]:
    """Pairs of suites, each with the runs and seeds that are evaluated on both together.

    A suite of geometry goes with the suite of scored pairs that shares most datasets with it, of those that the same
    run and seed are evaluated on, and with one alone; what is left over is evaluated on its own.
    """
    found: dict[Pair, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for (run, seed), asked in sorted(_asked(study).items()):
        for pair in _pairs(study.config["suites"], asked):
            found[pair][run].append(seed)
    return {pair: {run: tuple(seeds) for run, seeds in runs.items()} for pair, runs in sorted(found.items())}


def _asked(study: Study) -> dict[tuple[str, int], dict[str, set[str]]]:
    """Suites by kind that a run with files of its own is evaluated on, by its name and seed."""
    asked: dict[tuple[str, int], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for experiment, grid in study.grids.items():
        for name, run in study.runs_of(experiment).items():
            for seed in run.seeds:
                for kind, suites in grid["suites"].items():
                    asked[name, seed][kind].update(suites)
    return asked


def _pairs(suites: Config, asked: Mapping[str, set[str]]) -> Iterator[Pair]:
    free = [name for name in suites["sts"] if name in asked.get("sts", ())]
    for geometry in (name for name in suites["geometry"] if name in asked.get("geometry", ())):
        if not free:
            return
        read = set(datasets_in(suites["geometry"][geometry]))
        sts = max(free, key=lambda name: len(read.intersection(datasets_in(suites["sts"][name]))))
        free.remove(sts)
        yield Pair(sts, geometry)


def places(runs: Mapping[str, Seeds]) -> str:
    """A constraint of the wildcard ``run``, behind which /seed{seed}. stands: those runs with those seeds."""
    by_seeds: dict[Seeds, list[str]] = defaultdict(list)
    for run, seeds in runs.items():
        by_seeds[seeds].append(run)
    return "|".join(
        rf"(?:{one_of(names)})(?=/seed(?:{one_of(map(str, seeds))})\.)" for seeds, names in by_seeds.items()
    )
