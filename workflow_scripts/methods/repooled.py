"""A finished run with another readout, without training it again.

JTCSE, Table XI: the same twin by its [CLS] states, by means of its tokens, and by means of its first and last
layers. A head that was trained on the old readout is left out, but for the readout ``cls``, which is read through
it, or through the pooler that the encoder came with.
"""

from collections.abc import Sequence

from workflow_scripts.models.encoder import TextEncoder
from workflow_scripts.settings.methods import Repooled as Config


def build(config: Config, encoders: Sequence[TextEncoder], _tokenizers: object = ()) -> TextEncoder:
    """The run's encoder with the readout of ``config``; every sub-encoder of an ensemble is read by it."""
    (run,) = encoders
    encoder = run.read_by(config.readout)
    if not config.keeps_prompt:
        for prompted in (encoder, *encoder.leaves):
            prompted.template = None
    return encoder
