"""Draw the path of 3R's threshold in one experiment's runs (rule draw_threshold_path)."""

from workflow_scripts.artefacts import read_table, write_page, write_table
from workflow_scripts.errors import one_line_errors
from workflow_scripts.job import parse_job
from workflow_scripts.reporting.labels import told_apart
from workflow_scripts.reporting.learning_curves import History
from workflow_scripts.reporting.records import wildcard
from workflow_scripts.reporting.style import FigureStyle, figure_style, to_svg
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
    data = points(
        History(wildcard(path, "run"), int(wildcard(path, "seed")), read_table(path, WATCHED))
        for path in job.many("watched")
    )
    title = f"{TITLE}: {job.settings['title']}"
    with figure_style():
        figure = draw(data, style, title, told_apart(record.labels).sentences())
        svg = to_svg(figure, f"threshold-path-{job.wildcards['experiment']}", title, DESCRIPTION)
    write_table(job.outputs["data"], data, record)
    write_page(job.outputs["figure"], svg, record)


if __name__ == "__main__":
    with one_line_errors():
        main()
