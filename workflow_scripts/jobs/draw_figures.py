"""Draw the figures of an experiment, or of the extraction study (rule draw_figures).

One job draws them all, into a folder whose record vouches for every picture and its data. A figure of the same data,
settings, code and packages as one that was drawn before is taken from the cache.
"""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.figures.base import Request, figure_style, load_figure, to_svg
from workflow_scripts.provenance import cache
from workflow_scripts.provenance.artefacts import read_record, writing_model_folder
from workflow_scripts.provenance.closure import code_files
from workflow_scripts.provenance.job import Job
from workflow_scripts.provenance.key import job_key
from workflow_scripts.reporting.records import split_labels
from workflow_scripts.settings.report import Called


def draw_figures(job: Job) -> None:
    """Draw what is not drawn yet; write every picture and the numbers that it shows."""
    figures = job.settings["figures"]
    with writing_model_folder(job.artefacts[0], job.record()) as folder:
        for name in figures:
            files = {form: folder / f"{name}.{form}" for form in ("svg", "parquet")}
            key = _key(job, name)
            if not cache.restore(key, files):
                svg, points = _draw(job, name)
                files["svg"].write_text(svg, "utf-8")
                pq.write_table(points, files["parquet"], compression="zstd")
                cache.put(key, files)
        job.record()  # checks the code again, of which drawing imports more


def _key(job: Job, name: str) -> str:
    """The hash of all that decides how a figure looks; modules of other figures do not."""
    start = job.start
    own = code_files(f"figures.{start.settings['figures'][name]['module']}")
    others = {file for file in start.meaning if file.startswith("workflow_scripts/figures/")}.difference(own)
    return job_key(
        job.rule,
        wildcards=job.wildcards | {"figure": name},
        settings=start.settings["figures"][name],
        inputs={role: one.sha256 for role, one in start.inputs.items() if role.startswith(f"{name}.")},
        meaning={file: meaning for file, meaning in start.meaning.items() if file not in others},
        packages=start.packages,
    )


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
        title=title,
        footnotes=split_labels(labels).sentences(),
    )
    with figure_style():
        drawn = figure.draw(request)
        ids = f"{name}-{job.wildcards['experiment']}".replace("_", "-")
        svg = to_svg(drawn.picture, ids, title, description)
    return svg, pa.Table.from_pandas(drawn.points, preserve_index=False).replace_schema_metadata()
