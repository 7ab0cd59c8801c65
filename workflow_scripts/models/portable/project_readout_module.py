"""A readout of this project as a module of sentence-transformers.

Where this file is loaded from a model folder, Semblance must be importable: the readout itself stays there.
"""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from transformers import AutoConfig

from workflow_scripts.models.readouts import build_readout
from workflow_scripts.models.tokens import TokenBatch
from workflow_scripts.settings.readouts import parse_readout

from .readout_module import ReadoutModule


class Core(nn.Module):
    """The readout that the configuration names."""

    def __init__(self, readout: dict[str, Any], backbone: dict[str, Any]) -> None:
        super().__init__()
        self.readout = build_readout(parse_readout(readout), AutoConfig.for_model(**backbone))
        self.width = self.readout.width

    def forward(self, hidden_states: Sequence[Tensor], ids_BT: Tensor, mask_BT: Tensor) -> Tensor:
        """Sentence vectors, (B, D)."""
        vectors_BD: Tensor = self.readout(hidden_states, TokenBatch(ids_BT, mask_BT))
        return vectors_BD


class ProjectReadout(ReadoutModule):
    """A file of ``models/readouts`` on the hidden states."""

    core_class = Core
