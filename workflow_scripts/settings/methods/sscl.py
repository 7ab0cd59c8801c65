"""Settings of SSCL."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from workflow_scripts.settings.contrastive import Contrastive
from workflow_scripts.settings.readouts import pooling
from workflow_scripts.settings.start import Start, layers_outside


class Config(Contrastive):
    """Settings of SSCL."""

    module: Literal["sscl"]
    negative_layers: tuple[int, ...] = Field(min_length=1, description="Hidden states that are negatives.")

    def conflicts(self) -> Iterator[str]:
        """One layer is pooled."""
        yield from super().conflicts()
        if not isinstance(self.readout, pooling.Config) or len(self.readout.indices) != 1:
            yield "readout: sscl pools one layer as it pools others. Give a pooling readout of one layer."

    def misfits(self, start: Start) -> Iterator[str]:
        """The encoder has the layers that are negatives."""
        yield from super().misfits(start)
        yield from layers_outside(self.negative_layers, "method.negative_layers", start)
