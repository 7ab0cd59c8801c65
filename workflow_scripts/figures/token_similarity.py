"""How alike words are inside encoders: a row of maps a run, a column a sentence (3R, Figs. 1 and 3)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from transformers import PreTrainedTokenizerBase

from workflow_scripts.evaluation.correlation import cosine
from workflow_scripts.evaluation.token_similarity import unit_cosines
from workflow_scripts.figures.base import Request
from workflow_scripts.figures.loading import single_encoders
from workflow_scripts.figures.style import heading, in_lines, new_figure, short_names
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.encoding import encode
from workflow_scripts.settings.figures.token_similarity import NEEDS as NEEDS
from workflow_scripts.settings.figures.token_similarity import Config
from workflow_scripts.settings.style import FigureStyle

COLUMNS = pa.schema(
    [
        ("run", pa.string()),
        ("seed", pa.int32()),
        ("sentence", pa.string()),
        ("row_place", pa.int32()),
        ("row_unit", pa.string()),
        ("column_place", pa.int32()),
        ("column_unit", pa.string()),
        ("cosine", pa.float64()),
        ("sentence_cosine", pa.float64()),
    ]
)
"""Cosines between the words or pieces of each of two sentences, places from 0. ``sentence_cosine`` is that of the run's
vectors of the two sentences, the same in every row of a run and seed."""
TITLE = "How alike words are: {title}"
DESCRIPTION = "Maps of cosines between the words of a sentence, a row per run, a column per sentence."
HOW_DRAWN = "Cosines between words, means over seeds; at the left, the cosine of the two sentences."

_PANEL_INCHES = 3.1
_NUMBERS_UP_TO = 12  # words; the numbers of more would cover each other
_COLOURS = ListedColormap(colormaps["cividis_r"](np.linspace(0, 1, 48)))
_ON_LIGHT, _ON_DARK = "#111112", "#f8f8f9"  # of numbers, whatever the paper

Row = dict[str, Any]


def points(request: Request[Config]) -> pa.Table:
    """Cosines of every run; models are loaded one after the other."""
    parts = [cosines_of(*loaded, request.config) for loaded in single_encoders(request.inputs["models"])]
    return pa.concat_tables(parts)


def cosines_of(
    run: str, seed: int, encoder: SentenceEncoder, tokenizer: PreTrainedTokenizerBase, config: Config
) -> pa.Table:
    """Cosines within each of the two sentences, and between the run's own vectors of them."""
    left, right = encode(encoder, tokenizer, config.sentences, config.max_tokens)
    between = float(cosine(left[None], right[None])[0])
    rows = []
    for sentence in config.sentences:
        names, cosines_WW = unit_cosines(
            encoder,
            tokenizer,
            sentence,
            layer=config.layer,
            unit=config.unit,
            max_tokens=config.max_tokens,
        )
        rows += [
            (run, seed, sentence, row, names[row], column, names[column], value, between)
            for row, values in enumerate(cosines_WW.tolist())
            for column, value in enumerate(values)
        ]
    return pa.table(list(map(list, zip(*rows, strict=True))), schema=COLUMNS)


def draw(
    points: pa.Table, request: Request[Config], style: FigureStyle, title: str, footnotes: Sequence[str]
) -> Figure:
    """Draw the maps, all on one scale."""
    means = _over_seeds(points)
    runs, sentences = (list(dict.fromkeys(points[name].to_pylist())) for name in ("run", "sentence"))
    names = short_names(runs, request.called)
    notes = [HOW_DRAWN, *names.footnotes]
    figure = new_figure(style, _PANEL_INCHES * len(runs), title, notes, footnotes)
    panels = figure.subplots(len(runs), len(sentences), squeeze=False)
    shades = Normalize(min(row["cosine_mean"] for row in means), 1)
    for row, run in enumerate(runs):
        for column, sentence in enumerate(sentences):
            own = [cell for cell in means if (cell["run"], cell["sentence"]) == (run, sentence)]
            _draw_map(panels[row, column], own, shades)
            if row == 0:
                panels[row, column].set_title(heading(sentence, style, len(sentences)), fontsize="small")
        between = next(cell["sentence_cosine_mean"] for cell in means if cell["run"] == run)
        panels[row, 0].set_ylabel(f"{in_lines(names.short[run], _PANEL_INCHES)}\nsentences: {between:z.2f}")
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
            number = f"{value:z.2f}".replace("0.", ".", 1)
            axes.text(column + 0.5, row + 0.5, number, ha="center", va="center", fontsize=6.5, color=colour)
