"""Pictures of declared figures, with the numbers in them.

One job draws all figures of an experiment into a folder, whose record has the hashes of all pictures and their data.
The SVG has the same bytes every time, and its text stays text, so it can be searched and read aloud.

A figure is drawn at two widths. ``{figure}.svg`` is a complete picture for papers, with title, notes and labels. The
page shows only the panels, ``{figure}.wide.svg`` and ``{figure}.narrow.svg``, and prints the texts itself (``TEXTS``).
"""

import importlib
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from textwrap import fill
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.figures.base import (
    COLOURS,
    INK,
    NARROW_INCHES,
    WIDE_INCHES,
    Declaration,
    Figure,
    FigureRequest,
)
from workflow_scripts.provenance.artefacts import read_record, writing_model_folder
from workflow_scripts.provenance.job import Job
from workflow_scripts.reporting.records import split_labels

_RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # part of matplotlib, so text is equally wide on every machine
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "legend.title_fontsize": 7,
    "legend.frameon": False,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "figure.dpi": 72,  # resolution of SVG, for which the layout is computed
    "figure.facecolor": "none",  # on the paper of a page, light or dark
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
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
_TITLE_LETTERS, _NOTE_LETTERS = 80, 125  # per line as wide as the panels
_GAP_INCHES = 0.1  # between panels and texts
_LETTER = 0.62  # width of a letter, in sizes of the font
_AXIS_POINTS = 40  # part of a panel's width for the labels at its left
_KEY_POINTS = 36  # part of a legend entry's width for its line and the space around it
_BELOW: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0, 0), "alignment": "left"}
_PLACES = re.compile(r"""(?<=\s)(d|x|y|points|transform)="[-\d., a-zA-Z()\n]+"(?=[^<>]*>)""")
_DECIMALS = re.compile(r"-?\d+\.\d{3,}")
TEXTS = "texts.json"
"""File in a folder of figures with title, description and notes of each."""


@contextmanager
def figure_style(width_inches: float = WIDE_INCHES) -> Iterator[None]:
    """Draw in the project's style, independently of the user's matplotlibrc, and close all figures afterwards."""
    from matplotlib import pyplot

    pyplot.switch_backend("svg")
    with pyplot.style.context(["default", _RC | {"figure.figsize": (width_inches, width_inches)}]):
        yield
    pyplot.close("all")


def lay_out(picture: Figure) -> None:
    """Break titles that are wider than their panels, and put each distinct legend below the panels."""
    points = 72 * picture.get_figwidth()
    for axes in picture.axes:
        subplot = axes.get_subplotspec()
        columns = subplot.get_topmost_subplotspec().get_gridspec().ncols if subplot else 1
        letters = (points / columns - _AXIS_POINTS) / (_LETTER * _RC["axes.titlesize"])
        axes.set_title(_broken(axes.get_title(), int(letters)))
    legends = [*picture.legends, *filter(None, (axes.get_legend() for axes in picture.axes))]
    entries = {
        tuple(text.get_text() for text in legend.get_texts()): legend.legend_handles for legend in legends
    }
    title = legends[0].get_title().get_text() if legends else ""
    for legend in legends:
        legend.remove()
    for labels, handles in entries.items():
        size = _RC["legend.fontsize"]
        longest = max(map(len, labels)) * _LETTER * size + _KEY_POINTS
        broken = [_broken(label, int((points - _KEY_POINTS) / (_LETTER * size))) for label in labels]
        columns = max(1, int(points // longest))
        drawn = [handle for handle in handles if handle is not None]
        picture.legend(drawn, broken, title=title, ncols=columns, **_BELOW)
    picture.set_layout_engine("tight")


def _broken(text: str, letters: int) -> str:
    """Return a text in lines of at most ``letters`` letters, broken at spaces and after the dots of a run's name."""
    lines = [""]
    for part in re.findall(r"\n|[^\s.]*\.(?=\S)|\S+[^\S\n]*|[^\S\n]+", text):
        if part == "\n":
            lines.append("")
        elif lines[-1] and len((lines[-1] + part).rstrip()) > letters:
            lines.append(part)
        else:
            lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def panels_svg(picture: Figure, name: str, title: str, description: str) -> str:
    """Return the panels of a figure as SVG text, without title and notes; arguments as in ``to_svg``.

    Coordinates have two decimals, because a page has many pictures. Numbers in texts are not changed.
    """
    lay_out(picture)
    svg = _svg(picture, name, title, description)
    return _PLACES.sub(
        lambda attribute: _DECIMALS.sub(lambda number: f"{float(number[0]):.2f}", attribute[0]), svg
    )


def to_svg(picture: Figure | None, name: str, title: str, description: str, notes: Sequence[str]) -> str:
    """Return a figure as SVG text, with its title above the panels and notes below them.

    Args:
        picture: A picture drawn in ``figure_style``; None for title and notes only.
        name: Prefix of the ids of title and description.
        title: A short text for screen readers.
        description: A longer text for screen readers.
        notes: Notes, each on a new line.
    """
    from matplotlib import pyplot

    figure = picture or pyplot.figure(figsize=(WIDE_INCHES, 0.1))
    lay_out(figure)
    figure.draw_without_rendering()  # computes the positions of the panels
    (left, bottom), (_, top) = figure.get_tightbbox().get_points() / figure.get_size_inches()
    gap = _GAP_INCHES / figure.get_figheight()
    figure.text(left, top + gap, fill(title, _TITLE_LETTERS), size=9.5, weight="bold", va="bottom")
    lines = "\n".join(fill(note, _NOTE_LETTERS) for note in notes)
    figure.text(left, bottom - gap, lines, size=7, va="top", linespacing=1.35)
    return _svg(figure, name, title, description)


def _svg(figure: Figure, name: str, title: str, description: str) -> str:
    """Return a figure as SVG text with a title and a description for screen readers."""
    buffer = io.StringIO()
    metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", bbox_inches="tight", metadata=metadata)
    spoken = f'<title id="{name}-title">{escape(title)}</title>\n <desc id="{name}-desc">{escape(description)}</desc>'
    opening = f'role="img" aria-labelledby="{name}-title {name}-desc" version="1.1">'
    start, version, rest = buffer.getvalue().partition('version="1.1">')
    assert version, "matplotlib's opening tag has changed"
    return f"{start}{opening}\n {spoken}{rest}"


class DrawnFigure(NamedTuple):
    """Files and texts of one figure."""

    pictures: dict[str, str]
    """SVG texts by the suffixes of their files."""
    data: pa.Table
    texts: dict[str, Any]
    """Texts for the page: title without that of the grid, description, and notes except those about labels."""


def draw_figures(job: Job) -> None:
    """Draw the figures of an experiment, or of the extraction study (rule draw_figures)."""
    with writing_model_folder(job.artefacts[0], job.record()) as folder:
        drawn = {name: _draw(job, name) for name in job.settings["figures"]}
        for name, figure in drawn.items():
            for ending, svg in figure.pictures.items():
                (folder / f"{name}{ending}.svg").write_text(svg, "utf-8")
            pq.write_table(figure.data, folder / f"{name}.parquet", compression="zstd")
        texts = {name: figure.texts for name, figure in drawn.items()}
        (folder / TEXTS).write_text(json.dumps(texts, indent=1), "utf-8")
        job.record()  # checks the code again, because drawing imports further modules


def draw_claims(job: Job) -> None:
    """Draw the figures of the papers' claims (rule draw_claims)."""
    draw_figures(job)


def name_runs(picture: Figure, names: Mapping[str, str]) -> None:
    """Replace the identifiers of runs in all texts of a picture by their display names."""
    from matplotlib.text import Text

    for text in picture.findobj(Text):
        text.set_text(with_names(text.get_text(), names))


def with_names(text: str, names: Mapping[str, str]) -> str:
    """Return a text in which display names replace the identifiers of runs.

    An identifier may be the beginning of another one, or a word of a display name.
    """
    longest_first = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    whole = rf"(?<![\w.-])(?:{longest_first})(?![\w-]|\.\w)"
    return re.sub(whole, lambda run: names[run[0]], text) if names else text


def _draw(job: Job, name: str) -> DrawnFigure:
    """Return one figure, drawn wide and narrow."""
    figure_settings = job.settings["figures"][name]
    module = importlib.import_module(f"workflow_scripts.figures.{figure_settings['module']}")
    figure: Declaration = getattr(module, figure_settings["kind"])
    config = figure.settings.parse(figure_settings["config"], name)
    inputs = {role: job.inputs(f"{name}.{role}") for role in figure.reads}
    request = FigureRequest(config, inputs, figure_settings["names"])
    records = (read_record(path) for paths in inputs.values() for path in paths)
    labels = split_labels(label for record in records if record for label in record.labels)
    braces = config.model_dump() | {"title": figure_settings["title"]}
    texts = (figure.title, figure.short_title, figure.description)
    title, short, description = (text.format_map(braces) for text in texts)
    ids = f"{name}-{job.wildcards['experiment']}".replace("_", "-")
    pictures = {}
    for ending, width in ((".narrow", NARROW_INCHES), (".wide", WIDE_INCHES)):
        with figure_style(width):
            points, picture, notes = figure.draw(request)
            notes = [with_names(note, figure_settings["run_names"]) for note in notes]
            if picture:
                name_runs(picture, figure_settings["run_names"])
                pictures[ending] = panels_svg(picture, ids, title, description)
            if width == WIDE_INCHES:
                pictures[""] = to_svg(picture, ids, title, description, [*notes, *labels.sentences()])
    said = {
        "title": short,
        "description": description,
        "notes": notes,
        "labels": [*labels.substitutions, *labels.gaps],
    }
    table = pa.Table.from_pandas(points, preserve_index=False).replace_schema_metadata()
    return DrawnFigure(pictures, table, said)
