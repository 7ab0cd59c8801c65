"""Make a run from finished runs: the sum of their vectors, or another readout (rule build_ensemble)."""

from workflow_scripts.methods import load_method
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.provenance.artefacts import writing_model_folder
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.methods import read_method


def build_ensemble(job: Job) -> None:
    """Load the models of the runs, build one encoder of them, and write it."""
    method = load_method(job.settings["method"]["module"])
    config = read_method(job.settings["method"], "methods")
    folders = [path.parent for path in job.inputs("encoder")]
    encoder = method.build(config, [load_encoder(folder) for folder in folders])
    record = job.record(labels=[*job.settings.get("labels", []), *config.labels])
    with writing_model_folder(job.outputs["record"].parent, record) as temporary:
        encoder.save(temporary)
