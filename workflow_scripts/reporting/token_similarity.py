"""How alike words are inside encoders: a row of maps a run, a column a sentence (3R, Figs. 1 and 3)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure

from workflow_scripts.reporting.style import FigureStyle, in_lines, new_figure, short_names

Row = dict[str, Any]

TITLE = "How alike words are"
DESCRIPTION = "Maps of cosines between the words of a sentence, a row per run, a column per sentence."
HOW_DRAWN = "Cosines between words, means over seeds; at the left, the cosine of the two sentences."

_PANEL_INCHES = 3.1
_NUMBERS_UP_TO = 12  # words; the numbers of more would cover each other
_COLOURS = ListedColormap(colormaps["cividis_r"](np.linspace(0, 1, 48)))
_ON_LIGHT, _ON_DARK = "#111112", "#f8f8f9"  # of numbers, whatever the paper


def draw(table: pa.Table, style: FigureStyle, title: str, footnotes: Sequence[str]) -> Figure:
    """Draw ``table`` (``schemas.TOKEN_SIMILARITY``); all maps have one scale."""
    means = _over_seeds(table)
    runs, sentences = (list(dict.fromkeys(table[name].to_pylist())) for name in ("run", "sentence"))
    names = short_names(runs)
    notes = [HOW_DRAWN, *names.footnotes, *footnotes]
    figure = new_figure(style, _PANEL_INCHES * len(runs), title, notes)
    panels = figure.subplots(len(runs), len(sentences), squeeze=False)
    shades = Normalize(min(row["cosine_mean"] for row in means), 1)
    for row, run in enumerate(runs):
        for column, sentence in enumerate(sentences):
            own = [cell for cell in means if (cell["run"], cell["sentence"]) == (run, sentence)]
            _draw_map(panels[row, column], own, shades)
            if row == 0:
                panels[row, column].set_title(sentence, wrap=True, fontsize="small")
        between = next(cell["sentence_cosine_mean"] for cell in means if cell["run"] == run)
        panels[row, 0].set_ylabel(f"{in_lines(names.short[run])}\nsentences: {between:.2f}")
    return figure


def _over_seeds(table: pa.Table) -> list[Row]:
    keys = [name for name in table.column_names if name not in ("seed", "cosine", "sentence_cosine")]
    means = table.group_by(keys, use_threads=False).aggregate(
        [("cosine", "mean"), ("sentence_cosine", "mean")]
    )
    rows: list[Row] = means.to_pylist()
    return rows


def _draw_map(axes: Axes, cells: Sequence[Row], shades: Normalize) -> None:
    words = {cell["row_place"]: cell["row_unit"] for cell in cells}
    cosines = np.zeros((len(words), len(words)))
    for cell in cells:
        cosines[cell["row_place"], cell["column_place"]] = cell["cosine_mean"]
    axes.pcolormesh(cosines, cmap=_COLOURS, norm=shades)
    axes.invert_yaxis()
    named = [words[place] for place in range(len(words))]
    places = np.arange(len(words)) + 0.5
    axes.set_xticks(places, named, rotation=90)
    axes.set_yticks(places, named)
    axes.tick_params(length=0)
    if len(words) <= _NUMBERS_UP_TO:
        for (row, column), value in np.ndenumerate(cosines):
            colour = _ON_DARK if shades(value) > 0.55 else _ON_LIGHT
            number = f"{value:.2f}".replace("0.", ".", 1)
            axes.text(column + 0.5, row + 0.5, number, ha="center", va="center", fontsize=6.5, color=colour)
