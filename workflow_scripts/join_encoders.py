"""Make a run of finished runs: added up, or read in another way (rule join_encoders)."""

from workflow_scripts.artefacts import writing_model_folder
from workflow_scripts.errors import one_line_errors
from workflow_scripts.job import parse_job
from workflow_scripts.methods import load_method, method_modules
from workflow_scripts.models.loading import load_encoder, shared_tokenizer
from workflow_scripts.models.saving import save_encoder


def main() -> None:
    """Load, join, write."""
    job = parse_job("join_encoders", __doc__, wildcards=["run", "seed"], many=["encoder"], outputs=["record"])
    method = load_method(job.settings["method"]["module"])
    config = method.Config.parse(job.settings["method"], "methods")
    folders = [path.parent for path in job.many("encoder")]
    tokenizer = shared_tokenizer(folders)
    encoder = method.build(config, [load_encoder(folder)[0] for folder in folders])
    modules = sorted({*method_modules(job.settings["method"]), *encoder.modules_by_name})
    record = job.record(modules=modules, labels=job.settings.get("labels", []))
    with writing_model_folder(job.outputs["record"].parent, record) as place:
        save_encoder(place, encoder, tokenizer, job.settings["max_tokens"])


if __name__ == "__main__":
    with one_line_errors():
        main()
