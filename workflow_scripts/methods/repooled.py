"""A finished run with another readout, without further training.

JTCSE, Table XI: the same twin with its [CLS] states, means of its tokens, and means of its first and last layers. A
head that was trained with the old readout is left out. Only the readout ``cls`` uses it or, without one, the encoder's
own pooler.
"""

from collections.abc import Sequence

from workflow_scripts.models.text_encoder import TextEncoder
from workflow_scripts.settings.methods import Repooled as Config


def build(config: Config, encoders: Sequence[TextEncoder]) -> TextEncoder:
    """Return the run's encoder with the readout of ``config``, or an ensemble whose sub-encoders have this readout."""
    (run,) = encoders
    return run.with_readout(config.readout, keep_prompt=config.keep_prompt)
