"""An encoder as it is, with a readout and no training: what every method is compared with.

Published checkpoints of other methods are read so as well, each by the readout, and in the prompt, of its authors.
"""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field
from transformers import PreTrainedModel

from workflow_scripts.methods.base import MethodConfig
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.readouts import AnyReadout
from workflow_scripts.models.templates import Template


class Config(MethodConfig):
    """Settings of a frozen run."""

    module: Literal["frozen"]
    readout: AnyReadout
    template: Template | None = Field(
        default=None, description="Prompt that sentences are put into; left out for none."
    )

    @property
    def labels(self) -> Sequence[str]:
        """What the readout declares."""
        return self.readout.labels


def build(config: Config, backbone: PreTrainedModel) -> SentenceEncoder:
    """The encoder that is evaluated and saved.

    Raises:
        ConfigError: if its pooler is read and it has none.
    """
    plain = SentenceEncoder(
        backbone, config.readout, head=False, head_at_test=False, template=config.template
    )
    return plain.read_by(config.readout)
