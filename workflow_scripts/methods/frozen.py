"""An encoder as it is, with a readout and no training: what every method is compared with.

Published checkpoints of other methods are read so as well, each by the readout, and in the prompt, of its authors.
"""

from pathlib import Path

from transformers import PreTrainedTokenizerBase

from workflow_scripts.models.encoder import SentenceEncoder, TextEncoder, load_backbone, load_tokenizer
from workflow_scripts.models.published import PublishedEncoder, check_published
from workflow_scripts.settings.methods.frozen import Config
from workflow_scripts.settings.readouts.as_published import Config as AsPublished


def load(config: Config, folder: Path) -> tuple[TextEncoder, PreTrainedTokenizerBase]:
    """The encoder of a folder that is evaluated and saved, and its tokeniser.

    Raises:
        ConfigError: if the folder lacks what is read.
        DataError: if it cannot be loaded.
    """
    if isinstance(config.readout, AsPublished):
        encoder = PublishedEncoder(folder, config.readout)
        check_published(encoder)
        return encoder.eval(), encoder.model.tokenizer
    backbone, template = load_backbone(folder), config.template
    plain = SentenceEncoder(backbone, config.readout, head=False, head_at_test=False, template=template)
    return plain.read_by(config.readout), load_tokenizer(folder)
