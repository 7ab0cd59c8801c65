"""Draw one experiment's scores over the settings that it sweeps (rule draw_sweep)."""

from workflow_scripts.artefacts import read_table
from workflow_scripts.errors import one_line_errors
from workflow_scripts.figure_job import write_figure
from workflow_scripts.job import parse_job
from workflow_scripts.reporting.experiment import Experiment
from workflow_scripts.reporting.style import FigureStyle
from workflow_scripts.reporting.sweep import DESCRIPTION, TITLE, draw, rows_of
from workflow_scripts.schemas import TABLE


def main() -> None:
    """Read the table, pick the swept runs, draw, write."""
    job = parse_job(
        "draw_sweep", __doc__, wildcards=["experiment"], inputs=["table"], outputs=["figure", "data"]
    )
    name = job.wildcards["experiment"]
    experiment = Experiment.parse(job.settings["experiment"], f"experiments.{name}")
    style = FigureStyle.parse(job.settings["figure"], "report.figure")
    record = job.record()
    data = rows_of(experiment, read_table(job.inputs["table"], TABLE).to_pylist())
    title = f"{TITLE}: {experiment.title}"
    write_figure(
        job, record, data, title, DESCRIPTION, lambda notes: draw(data, experiment, style, title, notes)
    )


if __name__ == "__main__":
    with one_line_errors():
        main()
