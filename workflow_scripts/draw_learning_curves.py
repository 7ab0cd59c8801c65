"""Draw training loss and development score of one experiment's runs (rule draw_learning_curves)."""

from workflow_scripts.errors import one_line_errors
from workflow_scripts.figure_job import write_figure
from workflow_scripts.job import parse_job
from workflow_scripts.reporting.learning_curves import DESCRIPTION, TITLE, Config, draw, points
from workflow_scripts.reporting.records import run_tables
from workflow_scripts.reporting.style import FigureStyle
from workflow_scripts.schemas import HISTORY


def main() -> None:
    """Read the histories, average, draw, write."""
    job = parse_job(
        "draw_learning_curves",
        __doc__,
        wildcards=["experiment"],
        many=["histories"],
        outputs=["figure", "data"],
    )
    config = Config.parse(job.settings["learning_curves"], "report.learning_curves")
    style = FigureStyle.parse(job.settings["figure"], "report.figure")
    record = job.record()
    data = points(run_tables(job.many("histories"), HISTORY), config)
    title = f"{TITLE}: {job.settings['title']}"
    write_figure(job, record, data, title, DESCRIPTION, lambda notes: draw(data, style, title, notes))


if __name__ == "__main__":
    with one_line_errors():
        main()
