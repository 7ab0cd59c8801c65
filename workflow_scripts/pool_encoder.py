"""Make a run of an encoder without training it: a readout and nothing else (rule pool_encoder)."""

from workflow_scripts.artefacts import writing_model_folder
from workflow_scripts.errors import one_line_errors
from workflow_scripts.job import parse_job
from workflow_scripts.methods import labels_of, method_modules
from workflow_scripts.methods.untrained import Config, build
from workflow_scripts.models.encoder import load_backbone, load_tokenizer
from workflow_scripts.models.saving import save_encoder


def main() -> None:
    """Load, pool, write."""
    job = parse_job(
        "pool_encoder", __doc__, wildcards=["run", "seed"], inputs=["encoder"], outputs=["record"]
    )
    config = Config.parse(job.settings["method"], "methods")
    folder = job.inputs["encoder"].parent
    encoder = build(config, load_backbone(folder))
    record = job.record(modules=method_modules(job.settings["method"]), labels=labels_of(config))
    with writing_model_folder(job.outputs["record"].parent, record) as place:
        save_encoder(place, encoder, load_tokenizer(folder), job.settings["max_tokens"])


if __name__ == "__main__":
    with one_line_errors():
        main()
