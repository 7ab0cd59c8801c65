"""Draw two columns of one experiment's table against each other (rule draw_scatter)."""

from workflow_scripts.artefacts import read_table, write_page, write_table
from workflow_scripts.errors import one_line_errors
from workflow_scripts.job import parse_job
from workflow_scripts.reporting.experiment import Scatter
from workflow_scripts.reporting.labels import told_apart
from workflow_scripts.reporting.scatter import DESCRIPTION, TITLE, draw, points
from workflow_scripts.reporting.style import FigureStyle, figure_style, to_svg
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
    with figure_style():
        figure = draw(data, columns, style, title, told_apart(record.labels).sentences())
        svg = to_svg(figure, f"scatter-{name}", title, DESCRIPTION)
    write_table(job.outputs["data"], data, record)
    write_page(job.outputs["figure"], svg, record)


if __name__ == "__main__":
    with one_line_errors():
        main()
