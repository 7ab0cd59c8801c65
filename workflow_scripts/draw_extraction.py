"""Draw one figure of the extraction study (rule draw_extraction)."""

from workflow_scripts.artefacts import read_table
from workflow_scripts.errors import one_line_errors
from workflow_scripts.figure_job import write_figure
from workflow_scripts.job import parse_job
from workflow_scripts.reporting.extraction_cells import Names, Scores
from workflow_scripts.reporting.extraction_figures import load_figure
from workflow_scripts.reporting.style import FigureStyle
from workflow_scripts.schemas import EXTRACTION

UNITS = "Means over tasks; correlations and accuracies are times 100."


def main() -> None:
    """Read the scores, pick what is drawn, draw, write."""
    job = parse_job(
        "draw_extraction", __doc__, wildcards=["drawing"], many=["scores"], outputs=["figure", "data"]
    )
    name, kind = job.wildcards["drawing"], job.settings["drawing"]["kind"]
    module = load_figure(kind)
    config = module.Config.parse(job.settings["drawing"], f"extraction.figures.{name}")
    names = Names.parse(job.settings["names"], "extraction")
    style = FigureStyle.parse(job.settings["figure"], "report.figure")
    record = job.record(modules=[f"reporting.{kind}"])
    scores = Scores((read_table(path, EXTRACTION) for path in job.many("scores")), names.measures.values())
    data = module.points(config, names, scores)
    title: str = job.settings["drawing"]["title"]
    described = f"{kind.replace('_', ' ')}: {title}"
    write_figure(
        job, record, data, title, described, lambda notes: module.draw(data, config, style, [UNITS, *notes])
    )


if __name__ == "__main__":
    with one_line_errors():
        main()
