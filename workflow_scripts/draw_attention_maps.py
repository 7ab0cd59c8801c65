"""Draw the attention weights of one experiment's runs (rule draw_attention_maps)."""

from workflow_scripts.artefacts import read_table
from workflow_scripts.errors import one_line_errors
from workflow_scripts.figure_job import write_figure
from workflow_scripts.job import parse_job
from workflow_scripts.reporting.attention_maps import DESCRIPTION, TITLE, Config, Maps, draw, points
from workflow_scripts.reporting.records import wildcard
from workflow_scripts.reporting.style import FigureStyle
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
    write_figure(job, record, data, title, DESCRIPTION, lambda notes: draw(data, style, title, notes))


if __name__ == "__main__":
    with one_line_errors():
        main()
