"""Draw the figures of an experiment, or of the extraction study (rule draw_figures).

One job draws them all, into a folder whose record vouches for every picture and its data. A figure that the job before
drew from the same data, by the same settings, code and packages, is taken from what that one left.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.errors import DataError
from workflow_scripts.figures.base import Request, load_figure
from workflow_scripts.figures.style import FigureStyle, figure_style, to_svg
from workflow_scripts.provenance.artefacts import check_model_folder, read_record, writing_model_folder
from workflow_scripts.provenance.job import Job
from workflow_scripts.provenance.kept import folder_of, link_or_copy
from workflow_scripts.provenance.record import Record
from workflow_scripts.reporting.called import Called
from workflow_scripts.reporting.records import split_labels


def main(job: Job) -> None:
    """Draw what is not drawn yet; write every picture and the numbers that it shows."""
    before, was = _before(job)
    figures = job.settings["figures"]
    drawn = {name for name in figures if was and _decides(was, name) == _decides(job.start, name)}
    new = {name: _draw(job, name) for name in figures if name not in drawn}
    with writing_model_folder(job.artefacts[0], job.record()) as folder:
        for file in (f"{name}.{form}" for name in drawn for form in ("svg", "parquet")):
            link_or_copy(str(before / file), str(folder / file))
        for name, (svg, points) in new.items():
            (folder / f"{name}.svg").write_text(svg, "utf-8")
            pq.write_table(points, folder / f"{name}.parquet", compression="zstd")


def _before(job: Job) -> tuple[Path, Record | None]:
    """The folder that the last job of this place left, and its record; None where nothing whole is left."""
    folder = folder_of(job.artefacts) / job.artefacts[0].name
    try:
        return folder, check_model_folder(folder)
    except DataError:
        return folder, None


def _decides(record: Record, name: str) -> Sequence[Any]:
    """All that decides how a figure looks."""
    read = [given for role, given in record.inputs.items() if role.startswith(f"{name}.")]
    settings = record.settings["figures"].get(name), record.settings["style"]
    return [read, settings, record.wildcards, record.meaning, record.packages]


def _draw(job: Job, name: str) -> tuple[str, pa.Table]:
    """Draw one figure: the picture as SVG, and its points."""
    told = job.settings["figures"][name]
    figure = load_figure(told["module"], told["kind"])
    place = (figure.block or "").format(figure=name, **job.wildcards)
    config, called = figure.settings.parse(told["config"], place), Called.parse(told["called"], "names")
    inputs = {role: job.many(f"{name}.{role}") for role in figure.reads}
    records = (read_record(path) for paths in inputs.values() for path in paths)
    labels = {label for record in records if record for label in record.labels}
    braces = config.model_dump() | {"title": told["title"]}
    if "task" in braces:
        braces["task"] = called.dataset(braces["task"])
    title, description = (text.format_map(braces) for text in (figure.title, figure.description))
    request: Request[Any] = Request(
        config=config,
        inputs=inputs,
        called=called,
        names=told["names"],
        style=FigureStyle.parse(job.settings["style"], "report.figure"),
        title=title,
        footnotes=split_labels(labels).sentences(),
    )
    with figure_style():
        drawn = figure.draw(request)
        ids = f"{name}-{job.wildcards['experiment']}".replace("_", "-")
        svg = to_svg(drawn.picture, ids, title, description)
    return svg, pa.Table.from_pandas(drawn.points, preserve_index=False).replace_schema_metadata()
