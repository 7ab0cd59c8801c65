"""Settings of figures, and what they read: a module a figure, imported by its name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

_NOTHING: Mapping[str, str] = MappingProxyType({})


class Needs(NamedTuple):
    """What a figure reads; the job graph takes it from the source, so every value is a literal.

    An experiment has the figure if the block of settings is there and every input has a file.
    """

    inputs: Mapping[str, str] = _NOTHING
    """Role to the path of its files: one for each ``{run}`` and ``{seed}`` of the experiment, for each ``{suite}``
    of the kind in the path before it, and for each ``{corpus}`` that its runs are trained on."""
    config: str | None = None
    """Path of the block that ``Config`` reads: ``report.<name>`` is shared by all experiments, a block
    ``grids.{experiment}.<name>`` makes an experiment ask for the figure, ``extraction.figures.{figure}`` belongs to the
    extraction study, whose figures name their module as ``kind``."""
    trained: bool = False
    """Whether runs without training are left out."""
    method: Mapping[str, str] = _NOTHING
    """Setting of a run's method to a shell pattern of its value; runs with another value are left out."""
    runs: str | None = None
    """Path of a list of runs; others are left out."""
    task: str | None = None
    """Path of the name of a task; suites without it are left out."""

    @property
    def of_extraction(self) -> bool:
        """Whether the figure is one of the extraction study."""
        return (self.config or "").startswith("extraction.")

    @property
    def reads_models(self) -> bool:
        """Whether the job loads models, and so needs their readouts' code."""
        return any(pattern.endswith("/model/record.json") for pattern in self.inputs.values())
