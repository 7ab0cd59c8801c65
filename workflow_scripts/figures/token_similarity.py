"""How alike words are inside encoders: a row of maps a run, a column a sentence (3R, Figs. 1 and 3)."""

from statistics import fmean

import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from transformers import PreTrainedTokenizerBase

from workflow_scripts.evaluation.correlation import cosine
from workflow_scripts.evaluation.token_similarity import unit_cosines
from workflow_scripts.figures.base import Request
from workflow_scripts.figures.loading import single_encoders
from workflow_scripts.figures.maps import draw_maps, extremes, maps_of
from workflow_scripts.figures.style import heading, short_names
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.encoding import encode
from workflow_scripts.settings.figures.token_similarity import Config

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


def draw(points: pa.Table, request: Request[Config]) -> Figure:
    """Draw the maps, all on one scale."""
    runs, sentences = (list(dict.fromkeys(points[name].to_pylist())) for name in ("run", "sentence"))
    names = short_names(runs, request.called)
    figure = request.new_figure(_PANEL_INCHES * len(runs), [HOW_DRAWN, *names.footnotes])
    maps = maps_of(points, "sentence", ("row_place", "column_place", "column_unit"), "cosine")
    shades = Normalize(extremes(shown.values for shown in maps.values())[0], 1)
    headings = {sentence: heading(sentence, request.style, len(sentences)) for sentence in sentences}
    between = {
        run: fmean(points.filter(pc.equal(points["run"], run))["sentence_cosine"].to_pylist()) for run in runs
    }
    called = {run: f"{name}, sentences: {between[run]:z.2f}" for run, name in names.short.items()}
    draw_maps(figure, maps, called, headings, shades, _PANEL_INCHES, numbers_up_to=_NUMBERS_UP_TO)
    return figure
