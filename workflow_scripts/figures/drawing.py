"""Pictures of declared figures, and the numbers that they show.

One job draws all figures of an experiment, into a folder whose record vouches for every picture and its data. The SVG
has the same bytes every time, and its text stays text, so it can be searched and read aloud.
"""

import importlib
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from textwrap import fill
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.figures.base import COLOURS, INK, WIDTH_INCHES, Declaration, Figure, Request
from workflow_scripts.provenance.artefacts import read_record, writing_model_folder
from workflow_scripts.provenance.job import Job
from workflow_scripts.reporting.records import split_labels

_RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so text is equally wide on every machine
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "legend.title_fontsize": 7,
    "legend.frameon": False,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "figure.dpi": 72,  # of SVG, so that the layout is computed for it
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.prop_cycle": f"cycler('color', {[*COLOURS]})",
    "text.color": INK,
    "text.parse_math": False,  # names may contain a dollar sign
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.grid": True,
    "grid.color": INK,
    "grid.alpha": 0.13,
    "grid.linewidth": 0.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "semblance",  # ids are random otherwise
}
_TITLE_LETTERS, _NOTE_LETTERS = 80, 125  # of a line as wide as the panels
_GAP_INCHES = 0.1  # between panels and texts


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw in the project's style, whatever the user's matplotlibrc says, and close all figures afterwards."""
    from matplotlib import pyplot

    pyplot.switch_backend("svg")
    with pyplot.style.context(["default", _RC]):
        yield
    pyplot.close("all")


def to_svg(picture: Figure | None, name: str, title: str, description: str, notes: Sequence[str]) -> str:
    """Write a figure as SVG text, with its title above the panels and notes below them.

    Args:
        picture: Drawn in ``figure_style``; None for title and notes alone.
        name: Prefix of the ids of title and description.
        title: Text that screen readers read in place of the picture.
        description: A longer text for screen readers.
        notes: Each begins a line.
    """
    from matplotlib import pyplot

    figure = picture or pyplot.figure(figsize=(WIDTH_INCHES, 0.1))
    figure.draw_without_rendering()  # lays the panels out
    (left, bottom), (_, top) = figure.get_tightbbox().get_points() / figure.get_size_inches()
    gap = _GAP_INCHES / figure.get_figheight()
    figure.text(left, top + gap, fill(title, _TITLE_LETTERS), size=9.5, weight="bold", va="bottom")
    lines = "\n".join(fill(note, _NOTE_LETTERS) for note in notes)
    figure.text(left, bottom - gap, lines, size=7, va="top", linespacing=1.35)
    buffer = io.StringIO()
    metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", bbox_inches="tight", metadata=metadata)
    spoken = f'<title id="{name}-title">{escape(title)}</title>\n <desc id="{name}-desc">{escape(description)}</desc>'
    opening = f'role="img" aria-labelledby="{name}-title {name}-desc" version="1.1">'
    start, version, rest = buffer.getvalue().partition('version="1.1">')
    assert version, "matplotlib writes another opening tag than it did"
    return f"{start}{opening}\n {spoken}{rest}"


def draw_figures(job: Job) -> None:
    """Draw the figures of an experiment, or of the extraction study (rule draw_figures)."""
    with writing_model_folder(job.artefacts[0], job.record()) as folder:
        for name in job.settings["figures"]:
            svg, points = _draw(job, name)
            (folder / f"{name}.svg").write_text(svg, "utf-8")
            pq.write_table(points, folder / f"{name}.parquet", compression="zstd")
        job.record()  # checks the code again, of which drawing imports more


def name_runs(picture: Figure, names: Mapping[str, str]) -> None:
    """Replace the identifiers of runs in all texts of a picture by the names that readers see."""
    from matplotlib.text import Text

    for text in picture.findobj(Text):
        for run in sorted(names, key=len, reverse=True):  # one identifier may begin as another does
            text.set_text(text.get_text().replace(run, names[run]))


def _draw(job: Job, name: str) -> tuple[str, pa.Table]:
    """Draw one figure: the picture as SVG, and its points."""
    told = job.settings["figures"][name]
    module = importlib.import_module(f"workflow_scripts.figures.{told['module']}")
    figure: Declaration = getattr(module, told["kind"])
    config = figure.settings.parse(told["config"], name)
    inputs = {role: job.inputs(f"{name}.{role}") for role in figure.reads}
    records = (read_record(path) for paths in inputs.values() for path in paths)
    labels = split_labels(label for record in records if record for label in record.labels)
    braces = config.model_dump() | {"title": told["title"]}
    title, description = (text.format_map(braces) for text in (figure.title, figure.description))
    with figure_style():
        points, picture, notes = figure.draw(Request(config, inputs, told["names"]))
        if picture:
            name_runs(picture, told["run_names"])
        ids = f"{name}-{job.wildcards['experiment']}".replace("_", "-")
        notes = [*notes, *labels.sentences()]
        svg = to_svg(picture, ids, title, description, notes)
    return svg, pa.Table.from_pandas(points, preserve_index=False).replace_schema_metadata()
