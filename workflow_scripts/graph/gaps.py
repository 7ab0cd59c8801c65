"""Runs that cannot be made, because something that they need is declared `optional` and cannot be had.

Their rows of a table are gaps with the reason, and none of their jobs is planned. A dataset or encoder cannot be had if
all its sources are missing files, if the Hub says that a repository, commit or file does not exist or does not answer,
or if no source has a revision. What has been read once is never a gap again (``source_plans.planned_source``).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from workflow_scripts.data.sources import SourcePlan, expected
from workflow_scripts.graph.outside import Dataset, encoder_source
from workflow_scripts.graph.runs import Run
from workflow_scripts.graph.study import Study
from workflow_scripts.settings.corpora import RoundTripCorpus
from workflow_scripts.settings.encoders import AdaptedEncoder, FetchedEncoder
from workflow_scripts.settings.sources import HubEncoder

Reason = str | None
"""Why something cannot be had; None if it can."""


class Gaps:
    """Reasons why parts of a study cannot be made: each is that of the missing dataset or encoder behind the part."""

    def __init__(self, study: Study) -> None:
        self._study, self._settings = study, study.settings
        self.dataset, self.encoder = cache(self._dataset), cache(self._encoder)

    def _dataset(self, name: str) -> Reason:
        block = self._settings.datasets[name]
        if not block.optional:
            return None
        return _reason(f"dataset {name}", block.sources, Dataset(self._study, name).source)

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
        """Return why a corpus cannot be cut or translated. Sentences that are added to it must be there."""
        block = self._settings.corpora[name]
        if isinstance(block, RoundTripCorpus):
            return self.corpus(block.round_trip.corpus)
        return self.dataset(block.dataset)

    def pool(self, name: str) -> Reason:
        """Return why a pool of exemplars cannot be made."""
        block = self._settings.exemplars[name]
        return self.corpus(block.corpus) or self.encoder(block.encoder)

    def run(self, run: Run) -> Reason:
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


_PROBLEMS = {"unreachable": "Hub not reached", "absent": "not on the Hub", "none": "not there"}
"""Kinds of plans of something that cannot be had, in words."""


def _reason(what: str, sources: Sequence[Any], plan: SourcePlan) -> Reason:
    """Return why something cannot be had, by the source that is planned for it."""
    problem = _PROBLEMS.get(plan.kind)
    if plan.kind == "hub" and not any(one.revision for one in plan.repositories):
        problem = "no revision is set"
    return f"{what}: {problem}; expected {', or '.join(map(expected, sources))}" if problem else None


def unpinned(study: Study) -> Iterator[tuple[str, HubEncoder]]:
    """Yield encoders that runs start from and that only the Hub may have, at no revision: name and source."""
    named = study.reached(name for run in study.runs.values() for name in (run.encoder, run.teacher))
    for name in sorted(named):
        block = study.settings.encoders[name]
        if not isinstance(block, FetchedEncoder):
            continue
        if not all(one.revision for one in encoder_source(study, name).repositories):
            yield from ((name, one) for one in block.fetch.sources if isinstance(one, HubEncoder))


def gap_runs(study: Study) -> dict[str, str]:
    """Return the runs of a study that cannot be made, each with the reason."""
    gaps = Gaps(study)
    return {name: reason for name, run in study.runs.items() if (reason := gaps.run(run))}


def by_reason(study: Study) -> dict[str, list[str]]:
    """Return the runs that cannot be made, by the reason."""
    runs: dict[str, list[str]] = defaultdict(list)
    for name, reason in study.gaps.items():
        runs[reason].append(name)
    return runs
