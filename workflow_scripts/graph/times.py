"""How long an evaluation may take: its rule's own limit, and more for an encoder or a suite that takes longer.

The sums behind static averages, which take a pass over a corpus, ask in the same way.
"""

from collections.abc import Callable, Collection, Iterable
from math import ceil

from workflow_scripts.graph.slices import Wildcards
from workflow_scripts.graph.study import Study
from workflow_scripts.graph.workloads import Suite, Workloads
from workflow_scripts.planning.rates import forward_flops
from workflow_scripts.settings.start import Size

MARGIN = 2
"""Requests, in estimates."""
_START_SECONDS = 60
"""Python, PyTorch, checking and loading the model."""
_PROMPTED = 2  # ASSUME: a template is no longer than the sentences that are put into it
_FEED_FORWARD = 8
"""Squares of the width: what the feed-forward layers of BERT's kin multiply for a token."""


class Times:
    """Requests by a job's wildcards; they decide no result, so Snakemake reruns nothing for them."""

    def __init__(self, study: Study, workloads: Workloads) -> None:
        self._work = workloads
        self._study = study
        self._on_gpu: list[str] = study.config["evaluation"]["on_gpu"]

    def evaluating(
        self, least_minutes: int, kind: str = "", suites: Collection[Suite] = ()
    ) -> Callable[[Wildcards, int], int]:
        """Minutes of a job that evaluates a run, in each new attempt more.

        Args:
            least_minutes: What the rule takes for an encoder of any usual size.
            kind: Of its suites; left out where it is a wildcard.
            suites: Those of a job that evaluates several, one after the other.
        """

        def minutes(wildcards: Wildcards, attempt: int) -> int:
            read = suites or [(kind or wildcards.kind, wildcards.suite)]
            seconds = sum(self.seconds(*suite, wildcards.run) for suite in read)
            return attempt * max(least_minutes, ceil(MARGIN * seconds / 60))

        return minutes

    def averaging(self, least_minutes: int) -> Callable[[Wildcards, int], int]:
        """Minutes of a job that sums tokens' states over one shard, in each new attempt more."""

        def minutes(_wildcards: Wildcards, attempt: int) -> int:
            extraction = self._study.config["extraction"]
            sizes = [size for size in self._study.sizes.behind(extraction["encoder"]) if size]
            tokens = self._work.averaged.tokens / extraction["shards"]
            seconds = _START_SECONDS + tokens * _operations(sizes) / self._speed("extraction")
            asked: int = attempt * max(least_minutes, ceil(MARGIN * seconds / 60))
            return asked

        return minutes

    def seconds(self, kind: str, suite: str, run: str) -> float:
        """About how long a run is evaluated on a suite; scoring is never the GPU's."""
        work, sizes = self._work.of(kind, suite), self._work.sizes(run)
        tokens = work.tokens * (_PROMPTED if self._work.prompted(run) else 1)
        scoring = work.scoring_seconds * self._work.width(run)
        return _START_SECONDS + tokens * _operations(sizes) / self._speed(kind) + scoring

    def _speed(self, kind: str) -> float:
        """Operations a second while encoding."""
        rates, on_gpu = self._work.rates, kind in self._on_gpu
        return rates.gpu_encoding_tflops.value * 1e12 if on_gpu else rates.cpu_gflops.value * 1e9


def _operations(sizes: Iterable[Size]) -> float:
    """What encoders compute for one token."""
    return sum(forward_flops(1, size.layers, size.width, _FEED_FORWARD * size.width**2) for size in sizes)
