"""How much memory a job asks for: its rule's own amount, and more for an encoder that does not fit into it.

A new try asks for twice as much for each earlier one that was ended for its memory.
"""

from collections.abc import Callable, Collection
from math import ceil
from typing import Protocol

from workflow_scripts.graph.retries import killed_for_memory
from workflow_scripts.graph.slices import Wildcards
from workflow_scripts.graph.study import Study
from workflow_scripts.graph.workloads import Suite, Workloads
from workflow_scripts.settings.start import VOCABULARY

_READ_BYTES = 4
"""A parameter in float32."""
_TRAINED_BYTES = 16
"""With its gradient and AdamW's two moments."""
_BESIDE_GB = 4
"""Python, PyTorch, the text and a batch's states."""
_VECTOR_BYTES = 4 * 2 * 4
"""A dimension of a row's two texts in float32, in four copies: known, a task's, its features, a classifier's."""

_SUMMING_GB = 20
"""For an encoder that nobody can size: what BERT-large takes."""
_SUM_BYTES = 8
"""An entry of a token's summed states, in float64."""


class Request(Protocol):
    """What Snakemake calls for a job's memory."""

    def __call__(self, wildcards: Wildcards, attempt: int = 1) -> str:
        """Gigabytes of a job, such as 16GB."""


class Memory:
    """Requests by a job's wildcards; they decide no result, so Snakemake reruns nothing for them."""

    def __init__(self, study: Study, workloads: Workloads) -> None:
        self._study = study
        self._work = workloads

    @staticmethod
    def usual(gb: int) -> Request:
        """Of a job that takes no more for a larger encoder or suite."""
        return _in_each_try(lambda _wildcards: gb)

    def reading(self, least_gb: int) -> Request:
        """Of a job that computes with a run's model.

        Args:
            least_gb: What the rule takes for an encoder of any usual size, in GB.
        """
        return _in_each_try(
            lambda wildcards: _gigabytes(least_gb, self._parameters(wildcards.run), _READ_BYTES)
        )

    def evaluating(self, least_gb: int, kind: str = "", suites: Collection[Suite] = ()) -> Request:
        """Of a job that also holds vectors: of a suite of ``kind``, which may be a wildcard, or of several suites."""

        def request(wildcards: Wildcards) -> int:
            read = suites or [(kind or wildcards.kind, wildcards.suite)]
            rows = sum(self._work.of(*suite).rows for suite in read)
            vectors = rows * self._work.width(wildcards.run) * _VECTOR_BYTES
            return _gigabytes(least_gb, self._parameters(wildcards.run), _READ_BYTES, vectors)

        return _in_each_try(request)

    def encoding(self, least_gb: int) -> Request:
        """Of a job that computes with a teacher, which may consist of several runs."""
        return _in_each_try(
            lambda wildcards: _gigabytes(least_gb, self._behind(wildcards.teacher), _READ_BYTES)
        )

    def averaging(self) -> Request:
        """Of a job that sums all tokens' states in every layer, with the encoder of the extraction study."""
        encoder = self._study.config["extraction"]["encoder"]

        def request(_wildcards: Wildcards) -> int:
            sizes = [size for size in self._study.sizes.behind(encoder) if size]
            entries = sum((size.layers + 1) * VOCABULARY * size.width for size in sizes)
            least_gb = 0 if sizes else _SUMMING_GB
            return _gigabytes(least_gb, self._behind(encoder), _READ_BYTES, entries * _SUM_BYTES)

        return _in_each_try(request)

    def training(self, least_gb: int) -> Request:
        """Of a job that trains a run: of all its parameters, or of adapters beside frozen ones.

        Args:
            least_gb: What one training takes of an encoder of any usual size, in GB.
        """
        return _in_each_try(
            lambda wildcards: _gigabytes(
                least_gb, self._parameters(wildcards.run), self._trained_bytes(wildcards.run)
            )
        )

    def trained_gb(self, run: str) -> float | None:
        """What a run's training keeps of parameters, without activations; None for an encoder nobody can size yet."""
        return self._known_gb(self._study.runs[run].encoder, self._trained_bytes(run))

    def adapted_gb(self, encoder: str) -> float | None:
        """The same of an encoder that is adapted."""
        return self._known_gb(encoder, _TRAINED_BYTES)

    def _known_gb(self, encoder: str, bytes_each: int) -> float | None:
        known = all(self._study.sizes.behind(encoder))
        return self._behind(encoder) * bytes_each / 1e9 if known else None

    def _trained_bytes(self, run: str) -> int:
        method = self._study.method(run)
        frozen = method.get("base", method).get("weights")
        return _TRAINED_BYTES if frozen is None else _READ_BYTES

    def _parameters(self, run: str) -> int:
        return self._behind(self._study.runs[run].encoder)

    def _behind(self, encoder: str) -> int:
        """Parameters of all that an encoder consists of; 0 for what nobody can size before it is fetched."""
        return sum(size.parameters for size in self._study.sizes.behind(encoder) if size)


def _gigabytes(least_gb: int, parameters: int, bytes_each: int, more_bytes: float = 0) -> int:
    return max(least_gb, _BESIDE_GB + ceil((parameters * bytes_each + more_bytes) / 1e9))


def _in_each_try(gigabytes: Callable[[Wildcards], int]) -> Request:
    def request(wildcards: Wildcards, attempt: int = 1) -> str:
        return f"{gigabytes(wildcards) * 2 ** killed_for_memory(wildcards, attempt)}GB"

    return request
