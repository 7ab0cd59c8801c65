"""Gaps: runs that cannot be made because an `optional` dataset or encoder is unavailable.

Their rows of a table are gaps with the reason, and none of their jobs is planned. A dataset or encoder is unavailable
if all its sources are missing files, if the Hub does not answer or has no such repository, commit or file, or if no
source has a revision. Data that has been read once never becomes a gap (``source_plans.planned_source``).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from workflow_scripts.data.sources import SourcePlan, expected
from workflow_scripts.graph.outside import PlannedDataset, encoder_source
from workflow_scripts.graph.runs import PlannedRun
from workflow_scripts.graph.study import Study
from workflow_scripts.settings.corpora import RoundTripCorpus
from workflow_scripts.settings.encoders import AdaptedEncoder, FetchedEncoder
from workflow_scripts.settings.sources import HubEncoder

Reason = str | None
"""Reason why something cannot be made; None if it can."""


class Gaps:
    """Reasons why parts of a study cannot be made: the unavailable datasets or encoders that they need."""

    def __init__(self, study: Study) -> None:
        self._study, self._settings = study, study.settings
        self.dataset, self.encoder = cache(self._dataset), cache(self._encoder)

    def _dataset(self, name: str) -> Reason:
        block = self._settings.datasets[name]
        if not block.optional:
            return None
        return _reason(f"dataset {name}", block.sources, PlannedDataset(self._study, name).source)

    def _encoder(self, name: str) -> Reason:
        block = self._settings.encoders[name]
        if isinstance(block, FetchedEncoder):
            if not block.fetch.optional:
                return None
            return _reason(f"encoder {name}", block.fetch.sources, encoder_source(self._study, name))
        if isinstance(block, AdaptedEncoder):
            return self.encoder(block.adapt.base) or self.corpus(block.adapt.corpus)
        members = (self._study.runs.get(member) for member in self._study.encoders[name].members())
        return _first(self.run(member) for member in members if member)

    def corpus(self, name: str) -> Reason:
        """Return why a corpus cannot be made; if added sentences are missing, it is an error and no gap."""
        block = self._settings.corpora[name]
        if isinstance(block, RoundTripCorpus):
            return self.corpus(block.round_trip.corpus)
        return self.dataset(block.dataset)

    def pool(self, name: str) -> Reason:
        """Return why a pool of exemplars cannot be made."""
        block = self._settings.exemplars[name]
        return self.corpus(block.corpus) or self.encoder(block.encoder)

    def run(self, run: PlannedRun) -> Reason:
        """Return why a run cannot be made."""
        development = self._settings.development.dataset
        needed: list[tuple[Callable[[str], Reason], str | None]] = [
            (self.encoder, run.encoder),
            (self.encoder, run.teacher),
            (self.corpus, run.corpus),
            (self.corpus, run.fitted_on),
            (self.pool, run.pool),
            (self.dataset, development if run.corpus else None),
        ]
        return _first(reason(name) for reason, name in needed if name)


def _first(reasons: Iterable[Reason]) -> Reason:
    return next(filter(None, reasons), None)


_PROBLEMS = {"unreachable": "Hub not reached", "absent": "not on the Hub", "none": "not found"}
"""Printed reasons of plans without an available source."""


def _reason(what: str, sources: Sequence[Any], plan: SourcePlan) -> Reason:
    """Return why something is unavailable, from the plan of its source; None if it is available."""
    problem = _PROBLEMS.get(plan.kind)
    if plan.kind == "hub" and not any(repository.revision for repository in plan.repositories):
        problem = "no revision is set"
    return f"{what}: {problem}; expected {', or '.join(map(expected, sources))}" if problem else None


def unpinned(study: Study) -> Iterator[tuple[str, HubEncoder]]:
    """Yield name and source of encoders of runs that only the Hub may have and that have no revision."""
    named = study.reached(name for run in study.runs.values() for name in (run.encoder, run.teacher))
    for name in sorted(named):
        block = study.settings.encoders[name]
        if not isinstance(block, FetchedEncoder):
            continue
        if not all(repository.revision for repository in encoder_source(study, name).repositories):
            yield from ((name, source) for source in block.fetch.sources if isinstance(source, HubEncoder))


def gap_runs(study: Study) -> dict[str, str]:
    """Return the runs of a study that are gaps, each with the reason."""
    gaps = Gaps(study)
    return {name: reason for name, run in study.runs.items() if (reason := gaps.run(run))}


def by_reason(study: Study) -> dict[str, list[str]]:
    """Return the runs that are gaps, by reason."""
    runs: dict[str, list[str]] = defaultdict(list)
    for name, reason in study.gaps.items():
        runs[reason].append(name)
    return runs


def gap_lines(study: Study) -> Iterator[str]:
    """Yield a line for each missing source, with the number of runs that are gaps for it."""
    for reason, runs in by_reason(study).items():
        yield f"Gap: {reason} ({len(runs)} run{'s' if len(runs) > 1 else ''})"
