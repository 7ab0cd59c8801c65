"""Write the card of one model, with its scores, next to its folder (rule write_model_card)."""

from workflow_scripts.columns.scores import SCORES
from workflow_scripts.columns.training import HISTORY
from workflow_scripts.methods import load_method
from workflow_scripts.provenance.artefacts import check_model_folder, identity, read_table, write_page
from workflow_scripts.provenance.job import Job
from workflow_scripts.reporting.model_card import Config, model_card
from workflow_scripts.reporting.records import run_tables


def main(job: Job) -> None:
    """Read the records and the scores, lay out, write."""
    config = Config.parse(job.settings, "model card")
    method = load_method(config.method["module"])
    folder = job.inputs["model"].parent
    histories = [read_table(path, HISTORY) for path in job.many("history")]
    card = model_card(
        job.inputs["template"].read_text("utf-8"),
        folder,
        config,
        check_model_folder(folder),
        identity(job.inputs["model"]),
        method=method,
        scores=run_tables(job.many("scores"), SCORES),
        history=histories[0] if histories else None,
    )
    write_page(job.outputs["card"], card, job.record())
