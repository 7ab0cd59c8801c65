"""Draw the attention weights of one experiment's runs (rule draw_attention_maps)."""

from workflow_scripts.artefacts import read_table, write_page, write_table
from workflow_scripts.errors import one_line_errors
from workflow_scripts.job import parse_job
from workflow_scripts.reporting.attention_maps import DESCRIPTION, TITLE, Config, Maps, draw, points
from workflow_scripts.reporting.labels import told_apart
from workflow_scripts.reporting.records import wildcard
from workflow_scripts.reporting.style import FigureStyle, figure_style, to_svg
from workflow_scripts.schemas import ATTENTION


def main() -> None:
    """Read the weights, average, draw, write."""
    job = parse_job(
        "draw_attention_maps", __doc__, wildcards=["experiment"], many=["maps"], outputs=["figure", "data"]
    )
    config = Config.parse(job.settings["attention_maps"], "report.attention_maps")
    style = FigureStyle.parse(job.settings["figure"], "report.figure")
    record = job.record()
    data = points(
        (Maps(wildcard(path, "run"), read_table(path, ATTENTION)) for path in job.many("maps")), config
    )
    title = f"{TITLE}: {job.settings['title']}"
    with figure_style():
        figure = draw(data, style, title, told_apart(record.labels).sentences())
        svg = to_svg(figure, f"attention-maps-{job.wildcards['experiment']}", title, DESCRIPTION)
    write_table(job.outputs["data"], data, record)
    write_page(job.outputs["figure"], svg, record)


if __name__ == "__main__":
    with one_line_errors():
        main()
