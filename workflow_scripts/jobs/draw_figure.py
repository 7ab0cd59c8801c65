"""Draw one figure of an experiment or of the extraction study (rule draw_figure)."""

import importlib
from typing import Any

from workflow_scripts.figures.base import Request, load_figure, of_pattern
from workflow_scripts.figures.style import figure_style, to_svg
from workflow_scripts.provenance.artefacts import write_page, write_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.reporting.called import Called
from workflow_scripts.reporting.records import split_labels
from workflow_scripts.settings.style import FigureStyle


def main(job: Job) -> None:
    """Read what the figure needs, compute its points, draw, write the picture and the numbers it shows."""
    name = job.settings["module"]
    module = load_figure(name)
    settings = importlib.import_module(f"workflow_scripts.settings.figures.{name}")
    config = settings.Config.parse(
        job.settings["config"], (settings.NEEDS.config or "").format(**job.wildcards)
    )
    record, called = job.record(), Called.parse(job.settings["called"], "names")
    braces = config.model_dump() | {"title": job.settings["title"]}
    if "task" in braces:
        braces["task"] = called.dataset(braces["task"])
    title, description = (text.format_map(braces) for text in (module.TITLE, module.DESCRIPTION))
    request: Request[Any] = Request(
        config=config,
        inputs={role: of_pattern(path, job.many("files")) for role, path in settings.NEEDS.inputs.items()},
        called=called,
        names=job.settings["names"],
        style=FigureStyle.parse(job.settings["style"], "report.figure"),
        title=title,
        footnotes=split_labels(record.labels).sentences(),
    )
    points = module.points(request)
    assert points.schema.equals(module.COLUMNS), f"figures.{name}: points are not as its COLUMNS say"
    with figure_style():
        drawn = module.draw(points, request)
        ids = "-".join(job.wildcards[part] for part in ("figure", "experiment")).replace("_", "-")
        svg = to_svg(drawn, ids, title, description)
    write_table(job.outputs["data"], points, record)
    write_page(job.outputs["svg"], svg, record)
