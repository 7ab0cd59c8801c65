"""What each evaluation of a study works on, looked up by its suite and its run's encoder."""

from functools import cache, cached_property
from math import inf
from typing import Any

from workflow_scripts.graph.study import Study
from workflow_scripts.planning.evaluations import Work, work_of
from workflow_scripts.planning.rates import Rates, read_rates
from workflow_scripts.settings.start import Size

Suite = tuple[str, str]
"""Kind and name."""


class Workloads:
    """Lookups, each computed once: thousands of jobs share a few suites and encoders."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self.of = cache(self._of)
        self.sizes = cache(self._sizes)

    @cached_property
    def rates(self) -> Rates:
        """Contents of config/rates.yaml."""
        return read_rates(self._study.root / "config/rates.yaml")

    def _of(self, kind: str, suite: str) -> Work:
        """The work of a suite."""
        config: dict[str, Any] = self._study.config
        return work_of(kind, config["suites"][kind][suite], config["datasets"], self.rates)

    @cached_property
    def averaged(self) -> Work:
        """The work of summing tokens' states over the corpus of the extraction study, all shards together."""
        config: dict[str, Any] = self._study.config
        averages = config["extraction"]["averages"]
        corpus = {"dataset": averages["dataset"], "max_sentences": averages["max_sentences"] or inf}
        read = {"samples": {"corpus": corpus}, "max_tokens": averages["max_tokens"]}
        return work_of("extraction", read, config["datasets"], self.rates)

    def _sizes(self, run: str) -> list[Size]:
        """Sizes of the encoders behind a run, without those that nobody can size before they are fetched."""
        return [size for size in self._study.sizes.behind(self._study.runs[run].encoder) if size]

    def width(self, run: str) -> int:
        """Dimensions of the widest encoder behind a run; 0 where nobody can say before it is fetched."""
        return max((size.width for size in self.sizes(run)), default=0)

    def prompted(self, run: str) -> bool:
        """Whether a run puts sentences into a template."""
        method = self._study.method(run)
        block = method.get("base", method)
        return bool(block.get("template") or block.get("test_template"))
