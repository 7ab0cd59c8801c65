"""Draw the density of cosines in groups of equal judgement (rule draw_cosine_density)."""

from workflow_scripts.errors import one_line_errors
from workflow_scripts.figure_job import write_figure
from workflow_scripts.job import parse_job
from workflow_scripts.reporting.cosine_density import (
    DESCRIPTION,
    TITLE,
    Config,
    densities,
    draw,
)
from workflow_scripts.reporting.records import run_tables
from workflow_scripts.reporting.style import FigureStyle
from workflow_scripts.schemas import SIMILARITIES


def main() -> None:
    """Read the similarities, estimate densities, draw, write."""
    job = parse_job(
        "draw_cosine_density",
        __doc__,
        wildcards=["experiment"],
        many=["similarities"],
        outputs=["figure", "data"],
    )
    config = Config.parse(job.settings["cosine_density"], "report.cosine_density")
    style = FigureStyle.parse(job.settings["figure"], "report.figure")
    record = job.record()
    data = densities(run_tables(job.many("similarities"), SIMILARITIES), config)
    title = f"{TITLE}, {config.task}: {job.settings['title']}"
    write_figure(job, record, data, title, DESCRIPTION, lambda notes: draw(data, style, title, notes))


if __name__ == "__main__":
    with one_line_errors():
        main()
