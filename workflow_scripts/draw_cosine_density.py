"""Draw the density of cosines in groups of equal judgement (rule draw_cosine_density)."""

from workflow_scripts.artefacts import read_table, write_page, write_table
from workflow_scripts.errors import one_line_errors
from workflow_scripts.job import parse_job
from workflow_scripts.reporting.cosine_density import (
    DESCRIPTION,
    TITLE,
    Config,
    Similarities,
    densities,
    draw,
)
from workflow_scripts.reporting.labels import told_apart
from workflow_scripts.reporting.records import wildcard
from workflow_scripts.reporting.style import FigureStyle, figure_style, to_svg
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
    data = densities(
        (
            Similarities(wildcard(path, "run"), int(wildcard(path, "seed")), read_table(path, SIMILARITIES))
            for path in job.many("similarities")
        ),
        config,
    )
    title = f"{TITLE}, {config.task}: {job.settings['title']}"
    with figure_style():
        figure = draw(data, style, title, told_apart(record.labels).sentences())
        svg = to_svg(figure, f"cosine-density-{job.wildcards['experiment']}", title, DESCRIPTION)
    write_table(job.outputs["data"], data, record)
    write_page(job.outputs["figure"], svg, record)


if __name__ == "__main__":
    with one_line_errors():
        main()
