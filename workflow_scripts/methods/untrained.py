"""An encoder as it is, with a readout and no training: what every method is compared with."""

from collections.abc import Sequence
from typing import Literal

from transformers import PreTrainedModel

from workflow_scripts.config import Slice
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.readouts import AnyReadout


class Config(Slice):
    """Settings of an untrained run."""

    module: Literal["untrained"]
    readout: AnyReadout

    @property
    def labels(self) -> Sequence[str]:
        """What the readout declares."""
        return self.readout.labels


def build(config: Config, backbone: PreTrainedModel) -> SentenceEncoder:
    """The encoder that is evaluated and saved."""
    return SentenceEncoder(backbone, config.readout, head=False, head_at_test=False)
