"""Write the card of one model, with its scores, next to its folder (rule write_model_card)."""

from workflow_scripts.columns.scores import SCORES
from workflow_scripts.columns.training import HISTORY
from workflow_scripts.errors import one_line_errors
from workflow_scripts.methods import load_method
from workflow_scripts.provenance.artefacts import check_model_folder, identity, read_table, write_page
from workflow_scripts.provenance.job import parse_job
from workflow_scripts.reporting.model_card import Config, model_card
from workflow_scripts.reporting.records import RunTable, wildcard


def main() -> None:
    """Read the records and the scores, lay out, write."""
    job = parse_job(
        "write_model_card",
        __doc__,
        wildcards=["run", "seed"],
        inputs=["model"],
        optional=["scores", "history"],
        outputs=["card"],
    )
    config = Config.parse(job.settings, "model card")
    method = load_method(config.method["module"])
    folder = job.inputs["model"].parent
    scores = [
        RunTable(wildcard(path, "run"), int(wildcard(path, "seed")), read_table(path, SCORES))
        for path in job.many("scores")
    ]
    histories = [read_table(path, HISTORY) for path in job.many("history")]
    card = model_card(
        folder,
        config,
        check_model_folder(folder),
        identity(job.inputs["model"]),
        method=method,
        scores=scores,
        history=histories[0] if histories else None,
    )
    write_page(job.outputs["card"], card, job.record())


if __name__ == "__main__":
    with one_line_errors():
        main()
