"""Draw the path of 3R's threshold in one experiment's runs (rule draw_threshold_path)."""

from workflow_scripts.errors import one_line_errors
from workflow_scripts.figure_job import write_figure
from workflow_scripts.job import parse_job
from workflow_scripts.reporting.records import run_tables
from workflow_scripts.reporting.style import FigureStyle
from workflow_scripts.reporting.threshold_path import DESCRIPTION, TITLE, draw, points
from workflow_scripts.schemas import WATCHED


def main() -> None:
    """Read what the runs watched, thin out, draw, write."""
    job = parse_job(
        "draw_threshold_path",
        __doc__,
        wildcards=["experiment"],
        many=["watched"],
        outputs=["figure", "data"],
    )
    style = FigureStyle.parse(job.settings["figure"], "report.figure")
    record = job.record()
    data = points(run_tables(job.many("watched"), WATCHED))
    title = f"{TITLE}: {job.settings['title']}"
    write_figure(job, record, data, title, DESCRIPTION, lambda notes: draw(data, style, title, notes))


if __name__ == "__main__":
    with one_line_errors():
        main()
