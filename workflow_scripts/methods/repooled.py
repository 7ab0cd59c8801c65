"""A finished run read in another way, without training it again.

JTCSE, Table XI: the same twin by its [CLS] states, by means of its tokens, and by means of its first and last
layers. A head that was trained on the old readout is left out.
"""

from collections.abc import Sequence
from typing import Literal

from workflow_scripts.config import Slice
from workflow_scripts.errors import ConfigError
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.ensemble import Ensemble
from workflow_scripts.models.readouts import AnyReadout


class Config(Slice):
    """Settings of another reading of one run."""

    module: Literal["repooled"]
    readout: AnyReadout


def build(config: Config, towers: Sequence[SentenceEncoder | Ensemble]) -> SentenceEncoder | Ensemble:
    """The run's encoder with the readout of ``config`` on each of its towers.

    Raises:
        ConfigError: if there are several runs.
    """
    if len(towers) != 1:
        raise ConfigError(f"encoders: {len(towers)} runs; only one can be read anew. Name one in `runs`.")
    return _read_by(config, towers[0])


def _read_by(config: Config, encoder: SentenceEncoder | Ensemble) -> SentenceEncoder | Ensemble:
    if isinstance(encoder, Ensemble):
        towers = [_read_by(config, tower) for tower in encoder.members]
        return Ensemble(towers, encoder.weights, encoder.bypassed_layernorms)
    return SentenceEncoder(encoder.backbone, config.readout, head=False, head_at_test=False)
