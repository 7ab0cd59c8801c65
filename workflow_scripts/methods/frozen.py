"""An encoder with a readout and without training: the baseline of every method.

Published checkpoints of other methods are also read in this way, each with its authors' readout and prompt.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from workflow_scripts.data.published import ALONE, published_modules
from workflow_scripts.models.encoder import SentenceEncoder, TextEncoder, load_backbone, load_tokenizer
from workflow_scripts.models.encoding import check_tells_apart
from workflow_scripts.models.folders import save_encoder
from workflow_scripts.models.probe import check_large
from workflow_scripts.models.readouts import load_published, set_mask_token
from workflow_scripts.provenance.artefacts import writing_model_folder
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.methods import Frozen as Config


def load(config: Config, folder: Path) -> tuple[TextEncoder, PreTrainedTokenizerBase]:
    """The encoder of a folder, which is evaluated and saved, and its tokeniser.

    Raises:
        ConfigError: if the encoder does not fit the readout.
        DataError: if the folder cannot be loaded.
    """
    if config.readout.kind == "as_published":
        published = load_published(config.readout, folder)
        published.check()
        return published.eval(), published.tokenizer
    check_large(folder)
    return build(config, load_backbone(folder)), load_tokenizer(folder)


def build(config: Config, backbone: PreTrainedModel) -> SentenceEncoder:
    """The encoder that is evaluated and saved, with a readout that pools.

    Raises:
        ConfigError: if the readout needs a pooler and the encoder has none.
    """
    template = config.template
    plain = SentenceEncoder(backbone, config.readout, head=False, head_at_test=False, template=template)
    return plain.read_by(config.readout)


def other_pooling(config: Config, folder: Path) -> Iterator[str]:
    """Yield a label if the readout pools other tokens than the published model does."""
    from sentence_transformers.sentence_transformer.modules import Pooling  # slow to import

    for module in [] if config.readout.kind == "as_published" else published_modules(folder)[1:]:
        if module.kind == "Pooling":
            pooling: Any = Pooling.load(str(folder), subfolder=module.path, local_files_only=True)
            modes = [pooling.pooling_mode] if isinstance(pooling.pooling_mode, str) else pooling.pooling_mode
            if [*modes] != [getattr(config.readout, "mode", None)]:
                yield f"the encoder was published with {' and '.join(modes)} pooling, applied by {ALONE}"


def pool_encoder(job: Job) -> None:
    """Make a run from an encoder without training, by adding only a readout (rule pool_encoder)."""
    config = Config.parse(job.settings["method"], "methods")
    folder = job.inputs["encoder"].parent
    encoder, tokenizer = load(config, folder)
    set_mask_token(encoder, tokenizer, encoder.template)
    check_tells_apart(encoder, tokenizer)
    record = job.record(labels=[*config.labels, *other_pooling(config, folder)])
    with writing_model_folder(job.outputs["record"].parent, record) as place:
        save_encoder(place, encoder, tokenizer)
