"""Draw two columns of one experiment's table against each other (rule draw_scatter)."""

from workflow_scripts.artefacts import read_table
from workflow_scripts.errors import one_line_errors
from workflow_scripts.figure_job import write_figure
from workflow_scripts.job import parse_job
from workflow_scripts.reporting.experiment import Scatter
from workflow_scripts.reporting.scatter import DESCRIPTION, TITLE, draw, points
from workflow_scripts.reporting.style import FigureStyle
from workflow_scripts.schemas import TABLE


def main() -> None:
    """Read the table, pick two columns, draw, write."""
    job = parse_job(
        "draw_scatter", __doc__, wildcards=["experiment"], inputs=["table"], outputs=["figure", "data"]
    )
    name = job.wildcards["experiment"]
    columns = Scatter.parse(job.settings["scatter"], f"experiments.{name}.scatter")
    style = FigureStyle.parse(job.settings["figure"], "report.figure")
    record = job.record()
    data = points(read_table(job.inputs["table"], TABLE).to_pylist(), columns)
    title = f"{TITLE}: {job.settings['title']}"
    write_figure(
        job, record, data, title, DESCRIPTION, lambda notes: draw(data, columns, style, title, notes)
    )


if __name__ == "__main__":
    with one_line_errors():
        main()
