"""Make a run from an encoder without training, by adding only a readout (rule pool_encoder)."""

from workflow_scripts.methods.frozen import load, other_pooling
from workflow_scripts.models.encoding import check_tells_apart
from workflow_scripts.models.folders import save_encoder
from workflow_scripts.models.readouts import set_mask_token
from workflow_scripts.provenance.artefacts import writing_model_folder
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.methods import Frozen as Config


def pool_encoder(job: Job) -> None:
    """Load, pool, write."""
    config = Config.parse(job.settings["method"], "methods")
    folder = job.inputs["encoder"].parent
    encoder, tokenizer = load(config, folder)
    set_mask_token(encoder, tokenizer)
    check_tells_apart(encoder, tokenizer)
    record = job.record(labels=[*config.labels, *other_pooling(config, folder)])
    with writing_model_folder(job.outputs["record"].parent, record) as place:
        save_encoder(place, encoder, tokenizer)
