"""How much memory a job asks for: its rule's own amount, and more for an encoder that does not fit into it."""

from collections.abc import Callable, Collection
from math import ceil

from workflow_scripts.graph.slices import Wildcards
from workflow_scripts.graph.study import Study
from workflow_scripts.graph.workloads import Suite, Workloads

_READ_BYTES = 4
"""A parameter in float32."""
_TRAINED_BYTES = 16
"""With its gradient and AdamW's two moments."""
_BESIDE_GB = 4
"""Python, PyTorch, the text and a batch's states."""
_VECTOR_BYTES = 4 * 2 * 4
"""A dimension of a row's two texts in float32, in four copies: known, a task's, its features, a classifier's."""


class Memory:
    """Requests by a job's wildcards; they decide no result, so Snakemake reruns nothing for them."""

    def __init__(self, study: Study, workloads: Workloads) -> None:
        self._study = study
        self._work = workloads

    def reading(self, least_gb: int) -> Callable[[Wildcards], str]:
        """Of a job that computes with a run's model.

        Args:
            least_gb: What the rule takes for an encoder of any usual size, in GB.
        """
        return lambda wildcards: self._request(least_gb, self._parameters(wildcards.run), _READ_BYTES)

    def evaluating(
        self, least_gb: int, kind: str = "", suites: Collection[Suite] = ()
    ) -> Callable[[Wildcards], str]:
        """Of a job that also holds vectors: of a suite of ``kind``, which may be a wildcard, or of several suites."""

        def request(wildcards: Wildcards) -> str:
            read = suites or [(kind or wildcards.kind, wildcards.suite)]
            rows = sum(self._work.of(*suite).rows for suite in read)
            vectors = rows * self._work.width(wildcards.run) * _VECTOR_BYTES
            return self._request(least_gb, self._parameters(wildcards.run), _READ_BYTES, vectors)

        return request

    def encoding(self, least_gb: int) -> Callable[[Wildcards], str]:
        """Of a job that computes with a teacher, which may consist of several runs."""
        return lambda wildcards: self._request(least_gb, self._behind(wildcards.teacher), _READ_BYTES)

    def training(self, least_gb: int) -> Callable[[Wildcards], str]:
        """Of a job that trains a run: of all its parameters, or of adapters beside frozen ones."""
        return lambda wildcards: self._request(
            least_gb, self._parameters(wildcards.run), self._trained_bytes(wildcards.run)
        )

    def _trained_bytes(self, run: str) -> int:
        method = self._study.method(run)
        frozen = method.get("base", method).get("weights")
        return _TRAINED_BYTES if frozen is None else _READ_BYTES

    def _parameters(self, run: str) -> int:
        return self._behind(self._study.runs[run].encoder)

    def _behind(self, encoder: str) -> int:
        """Parameters of all that an encoder consists of; 0 for what nobody can size before it is fetched."""
        return sum(size.parameters for size in self._study.sizes.behind(encoder) if size)

    @staticmethod
    def _request(least_gb: int, parameters: int, bytes_each: int, more_bytes: float = 0) -> str:
        return f"{max(least_gb, _BESIDE_GB + ceil((parameters * bytes_each + more_bytes) / 1e9))}GB"
