"""An encoder as it is, with a readout and no training: what every method is compared with.

Published checkpoints of other methods are read so as well, each by the readout, and in the prompt, of its authors.
"""

from transformers import PreTrainedModel

from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.settings.methods.frozen import Config


def build(config: Config, backbone: PreTrainedModel) -> SentenceEncoder:
    """The encoder that is evaluated and saved.

    Raises:
        ConfigError: if its pooler is read and it has none.
    """
    plain = SentenceEncoder(
        backbone, config.readout, head=False, head_at_test=False, template=config.template
    )
    return plain.read_by(config.readout)
