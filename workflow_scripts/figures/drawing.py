"""Pictures of declared figures, and the numbers that they show.

One job draws all figures of an experiment, into a folder whose record vouches for every picture and its data. The SVG
has the same bytes every time, and its text stays text, so it can be searched and read aloud.
"""

import importlib
import io
from contextlib import AbstractContextManager
from html import escape
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.figures.base import INK, POINTS, Declaration, Figure, Request
from workflow_scripts.provenance import cache
from workflow_scripts.provenance.artefacts import read_record, writing_model_folder
from workflow_scripts.provenance.closure import code_files
from workflow_scripts.provenance.job import Job
from workflow_scripts.provenance.key import job_key
from workflow_scripts.reporting.records import split_labels

_RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so text is equally wide on every machine
    "font.size": POINTS["text"],
    "axes.labelsize": POINTS["text"],
    "axes.titlesize": POINTS["text"],
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "text.color": INK,
    "text.parse_math": False,  # names may contain a dollar sign
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": POINTS["small"],
    "ytick.labelsize": POINTS["small"],
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "grid.color": INK,
    "grid.alpha": 0.13,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "semblance",  # ids are random otherwise
}


def figure_style() -> AbstractContextManager[None]:
    """A context that draws in the project's style, and ignores the user's matplotlibrc."""
    from matplotlib import style

    context: AbstractContextManager[None] = style.context(["default", _RC])
    return context


def to_svg(figure: Figure, name: str, title: str, description: str) -> str:
    """Write a figure as SVG text.

    Args:
        figure: Made by ``new_figure`` in ``figure_style``.
        name: Prefix of the ids of title and description.
        title: Text that screen readers read in place of the picture.
        description: A longer text for screen readers.
    """
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    spoken = f'<title id="{name}-title">{escape(title)}</title>\n <desc id="{name}-desc">{escape(description)}</desc>'
    opening = f'role="img" aria-labelledby="{name}-title {name}-desc" version="1.1">'
    start, version, rest = buffer.getvalue().partition('version="1.1">')
    assert version, "matplotlib writes another opening tag than it did"
    return f"{start}{opening}\n {spoken}{rest}"


def draw_figures(job: Job) -> None:
    """Draw the figures of an experiment, or of the extraction study (rule draw_figures).

    A figure of the same data, settings, code and packages as one that was drawn before is taken from the cache.
    """
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
    own = code_files("figures.drawing", f"figures.{start.settings['figures'][name]['module']}")
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
    module = importlib.import_module(f"workflow_scripts.figures.{told['module']}")
    figure: Declaration = getattr(module, told["kind"])
    place = (figure.block or "").format(figure=name, **job.wildcards)
    config = figure.settings.parse(told["config"], place)
    inputs = {role: job.many(f"{name}.{role}") for role in figure.reads}
    records = (read_record(path) for paths in inputs.values() for path in paths)
    labels = {label for record in records if record for label in record.labels}
    braces = config.model_dump() | {"title": told["title"]}
    title, description = (text.format_map(braces) for text in (figure.title, figure.description))
    request: Request[Any] = Request(
        config=config,
        inputs=inputs,
        names=told["names"],
        title=title,
        footnotes=split_labels(labels).sentences(),
    )
    with figure_style():
        drawn = figure.draw(request)
        ids = f"{name}-{job.wildcards['experiment']}".replace("_", "-")
        svg = to_svg(drawn.picture, ids, title, description)
    return svg, pa.Table.from_pandas(drawn.points, preserve_index=False).replace_schema_metadata()
