"""Draw one figure of an experiment or of the extraction study (rule draw_figure)."""

from workflow_scripts.figures.base import Request, load_figure, of_pattern
from workflow_scripts.figures.style import figure_style, to_svg
from workflow_scripts.provenance.artefacts import write_page, write_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.reporting.called import Called
from workflow_scripts.reporting.labels import split_labels
from workflow_scripts.settings.style import FigureStyle


def main(job: Job) -> None:
    """Read what the figure needs, compute its points, draw, write the picture and the numbers it shows."""
    name = job.settings["module"]
    module = load_figure(name)
    style = FigureStyle.parse(job.settings["style"], "report.figure")
    request = Request(
        config=module.Config.parse(
            job.settings["config"], (module.NEEDS.config or "").format(**job.wildcards)
        ),
        inputs={role: of_pattern(path, job.many("files")) for role, path in module.NEEDS.inputs.items()},
        called=Called.parse(job.settings["called"], "names"),
        names=job.settings["names"],
    )
    record = job.record()
    points = module.points(request)
    assert points.schema.equals(module.COLUMNS), f"figures.{name}: points are not as its COLUMNS say"
    braces = request.config.model_dump() | {"title": job.settings["title"]}
    if "task" in braces:
        braces["task"] = request.called.dataset(braces["task"])
    title, description = (text.format_map(braces) for text in (module.TITLE, module.DESCRIPTION))
    with figure_style():
        drawn = module.draw(points, request, style, title, split_labels(record.labels).sentences())
        ids = "-".join(job.wildcards[part] for part in ("figure", "experiment")).replace("_", "-")
        svg = to_svg(drawn, ids, title, description)
    write_table(job.outputs["data"], points, record)
    write_page(job.outputs["svg"], svg, record)
