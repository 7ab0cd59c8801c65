"""Draw the figures of an experiment, or of the extraction study (rule draw_figures).

One job draws them all, into a folder whose record vouches for every picture and its data. A figure of the same data,
settings, code and packages as one that was drawn before is taken from the cache.
"""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from workflow_scripts.figures.base import FigureKind, Request, load_figure
from workflow_scripts.figures.style import figure_style, to_svg
from workflow_scripts.provenance import cache
from workflow_scripts.provenance.artefacts import read_record, writing_model_folder
from workflow_scripts.provenance.job import Job
from workflow_scripts.provenance.key import job_key
from workflow_scripts.reporting.called import Called
from workflow_scripts.reporting.records import split_labels
from workflow_scripts.settings.figures import FIGURES
from workflow_scripts.settings.style import FigureStyle


def main(job: Job) -> None:
    """Draw what is not drawn yet; write every picture and the numbers that it shows."""
    figures = job.settings["figures"]
    with writing_model_folder(job.artefacts[0], job.record()) as folder:
        for name, figure in figures.items():
            files = {form: folder / f"{name}.{form}" for form in ("svg", "parquet")}
            key = _key(job, name)
            if not cache.restore(key, files):
                _draw(job, name, load_figure(figure["module"]), folder)
                cache.put(key, files)


def _key(job: Job, name: str) -> str:
    """The hash of all that decides how a figure looks."""
    start = job.start
    return job_key(
        job.rule,
        wildcards=job.wildcards | {"figure": name},
        settings={"figure": start.settings["figures"][name], "style": start.settings["style"]},
        inputs={role: one.sha256 for role, one in start.inputs.items() if role.startswith(f"{name}.")},
        meaning=start.meaning,
        packages=start.packages,
    )


def _draw(job: Job, name: str, kind: FigureKind, folder: Path) -> None:
    """Read what one figure needs, compute its points, draw and write them."""
    figure = job.settings["figures"][name]
    settings = FIGURES[figure["module"]]
    place = (settings.needs.config or "").format(figure=name, **job.wildcards)
    config, called = settings.parse(figure["config"], place), Called.parse(figure["called"], "names")
    inputs = {role: job.many(f"{name}.{role}") for role in settings.needs.inputs}
    records = (read_record(path) for paths in inputs.values() for path in paths)
    labels = {label for record in records if record for label in record.labels}
    braces = config.model_dump() | {"title": figure["title"]}
    if "task" in braces:
        braces["task"] = called.dataset(braces["task"])
    title, description = (text.format_map(braces) for text in (kind.title, kind.description))
    request: Request[Any] = Request(
        config=config,
        inputs=inputs,
        called=called,
        names=figure["names"],
        style=FigureStyle.parse(job.settings["style"], "report.figure"),
        title=title,
        footnotes=split_labels(labels).sentences(),
    )
    points = kind.points(request)
    assert points.schema.equals(kind.columns), f"{name}: points are not as its columns say"
    with figure_style():
        drawn = kind.draw(points, request)
        ids = f"{name}-{job.wildcards['experiment']}".replace("_", "-")
        (folder / f"{name}.svg").write_text(to_svg(drawn, ids, title, description), "utf-8")
    pq.write_table(points, folder / f"{name}.parquet", compression="zstd")
