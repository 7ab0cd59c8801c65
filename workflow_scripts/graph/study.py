"""A study in its graph: the configuration, and its grids, runs and encoders."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from workflow_scripts.errors import ErrorDetails
from workflow_scripts.graph.encoders import Encoder
from workflow_scripts.graph.runs import Grid, PlannedRun, PlannedSuite, all_runs
from workflow_scripts.settings import grids as asked
from workflow_scripts.settings.encoders import AdaptedEncoder, EncoderFromRuns, FetchedEncoder
from workflow_scripts.settings.extraction import Show
from workflow_scripts.settings.grids import EXTRACTION, GridBlock, is_measured, paper_of
from workflow_scripts.settings.study import Configuration, RunSettings, read_run
from workflow_scripts.settings.workplace import Workplace, workplace_of


@dataclass(frozen=True)
class Study:
    """The study that rules use; immutable."""

    settings: Configuration
    blocks: Mapping[str, GridBlock]
    """Grids by name."""
    root: Path
    """Folder of the Snakefile."""
    gaps: Mapping[str, str] = field(default_factory=dict)
    """Runs that are gaps, each with the reason (``graph.gaps``)."""
    _read_runs: dict[str, tuple[asked.Run, RunSettings | None, list[ErrorDetails]]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @property
    def folder(self) -> str:
        """Return the folder of the study's results below the working directory."""
        return f"results/{self.settings.name}"

    @cached_property
    def workplace(self) -> Workplace:
        """Return the places of finished work, answers and local data for its jobs."""
        return workplace_of(**self.settings.model_dump(include={*Workplace.model_fields}))

    @property
    def data_root(self) -> Path | None:
        """Return the folder of local data; None if none is set."""
        return self.workplace.data_root

    @property
    def shows_extraction(self) -> bool:
        """Return whether the experiments include the extraction study."""
        return EXTRACTION in self.settings.experiments

    @property
    def shown_extraction(self) -> Show:
        """Return the tables and figures of the extraction study; none unless the experiments include it."""
        return (
            self.settings.extraction.show
            if self.shows_extraction
            else Show(statistics=[], tables=[], figures=[])
        )

    @cached_property
    def grids(self) -> dict[str, Grid]:
        """Return the grids by name."""
        return {name: Grid(self, name, block) for name, block in self.blocks.items()}

    @cached_property
    def encoders(self) -> dict[str, Encoder]:
        """Return the encoders by name."""
        return {name: Encoder(self, name, block) for name, block in self.settings.encoders.items()}

    def paper_grids(self, paper: str | None = None, *, timed: bool = False) -> list[Grid]:
        """Return the grids of one paper, or all; with ``timed``, only those with measured columns."""
        grids = [grid for name, grid in self.grids.items() if paper in (None, paper_of(name))]
        return [grid for grid in grids if not timed or any(map(is_measured, grid.columns))]

    @cached_property
    def suites(self) -> dict[str, PlannedSuite]:
        """Return the suites by name; names are unique across kinds."""
        kinds = self.settings.suites.by_kind.values()
        return {name: PlannedSuite(self, name, block) for named in kinds for name, block in named.items()}

    def read_run(self, name: str, run: asked.Run) -> tuple[RunSettings | None, list[ErrorDetails]]:
        """Return the settings of a run, or None and the errors about them; each run is read once."""
        known = self._read_runs.get(name)
        if known is None or known[0] != run:
            known = (run, *read_run(self.settings, run))
            self._read_runs[name] = known
        return known[1:]

    @cached_property
    def runs(self) -> dict[str, PlannedRun]:
        """Return all runs of all grids and their member runs, gaps included, each with all its seeds."""
        runs = {}
        for name, run in all_runs(self.blocks, self.settings.encoders).items():
            settings, errors = self.read_run(name, run)
            assert settings, errors
            starts = run.encoder, run.corpus, run.teacher
            runs[name] = PlannedRun(
                self, name, run, *starts, settings.method, settings.training, settings.development
            )
        return runs

    @cached_property
    def made_runs(self) -> dict[str, PlannedRun]:
        """Return the runs that are made: those of all grids and their member runs, without gaps."""
        asked_for = all_runs(self.blocks, self.settings.encoders, self.gaps)
        return {name: replace(self.runs[name], asked=run) for name, run in asked_for.items()}

    def per_run(self, pattern: str) -> list[str]:
        """Return a path for each run that is made and each of its seeds."""
        return [file for run in self.made_runs.values() for file in run.files(pattern)]

    @cached_property
    def trained(self) -> dict[str, PlannedRun]:
        """Return the trained runs, gaps included."""
        return {name: run for name, run in self.runs.items() if run.corpus}

    @cached_property
    def trainings(self) -> dict[str, PlannedRun]:
        """Return the trained runs, without gaps."""
        return {name: run for name, run in self.made_runs.items() if run.corpus}

    @cached_property
    def _named(self) -> set[str | None]:
        """Return the encoders and teachers of runs."""
        return {encoder for run in self.made_runs.values() for encoder in (run.encoder, run.teacher)}

    @property
    def read_encoders(self) -> list[str]:
        """Return the fetched and adapted encoders that runs need."""
        reached = self.reached(self._named)
        return sorted(name for name in reached if not isinstance(self.encoders[name].block, EncoderFromRuns))

    @cached_property
    def read_corpora(self) -> list[str]:
        """Return the corpora that runs, their encoders and pools of exemplars are made from."""
        of_runs = {corpus for run in self.made_runs.values() for corpus in run.read_corpora}
        of_pools = {self.settings.exemplars[pool].corpus for pool in self.asked_pools}
        return sorted(of_runs | of_pools | self.behind(self._named)[1])

    @cached_property
    def asked_pools(self) -> list[str]:
        """Return the pools of exemplars that the study makes, with those that no run uses."""
        pools = (run.pool for run in self.made_runs.values())
        return sorted({*self.settings.exemplar_pools, *filter(None, pools)})

    @cached_property
    def evaluation_sets(self) -> list[str]:
        """Return the datasets of evaluations, with the development set."""
        evaluated = {name for grid in self.grids.values() for name in grid.tasks.values()}
        development = self.settings.development.dataset if self.trainings else None
        return sorted(evaluated | {*filter(None, [development])})

    def behind(self, encoders: Iterable[str | None]) -> tuple[set[str], set[str]]:
        """Return all fetched encoders and corpora that the given encoders depend on."""
        reached = [self.encoders[name] for name in self.reached(encoders)]
        adapted = {
            encoder.block.adapt.corpus for encoder in reached if isinstance(encoder.block, AdaptedEncoder)
        }
        members = {name for encoder in reached for name in encoder.members()}
        of_members = {corpus for name in members for corpus in self.runs[name].read_corpora}
        return {
            encoder.name for encoder in reached if isinstance(encoder.block, FetchedEncoder)
        }, adapted | of_members

    def reached(self, names: Iterable[str | None]) -> set[str]:
        """Return the given encoders that are defined, and all encoders from which they are made."""
        reached, pending = set[str](), self.encoders.keys() & {*names}
        while pending:
            reached |= pending
            starts = {start for name in pending for start in self.encoders[name].starts}
            pending = (self.encoders.keys() & starts) - reached
        return reached
