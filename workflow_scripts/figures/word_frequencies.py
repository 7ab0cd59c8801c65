"""Frequencies of a corpus's words by rank, and their rates of change (3R, Table 5).

The paper prints the words at and around the peaks of these rates; they are drawn at their ranks.
"""

from functools import partial
from typing import Any

import pandas as pd
from pydantic import Field

from workflow_scripts.columns.corpora import WORD_COUNTS
from workflow_scripts.config import Settings
from workflow_scripts.data.printed import read_printed
from workflow_scripts.errors import ConfigError
from workflow_scripts.figures.base import Declaration, Drawn, Request, frame
from workflow_scripts.figures.style import COLOURS, log_scale
from workflow_scripts.provenance.artefacts import read_table

_PANEL_INCHES = 1.9


class WordFrequencies(Settings):
    """Settings of the word frequencies."""

    words: int = Field(gt=1, description="Number of words to draw, the most frequent first.")


@partial(
    Declaration,
    title="Words of the corpus by frequency: {title}",
    description="Number of occurrences and rate of change over the rank of a word, the paper's as points.",
    caption=(
        "Number of occurrences of the most frequent words of the corpus of {experiment}, and how much rarer each "
        "word is than the one before it, by rank. Points are the values that 3R prints in its Table 5."
    ),
    reads={
        "words": "<results>/corpora/{corpus}/words.parquet",
        "printed": "resources/published/three_r_table5.csv",
    },
    settings=WordFrequencies,
    block="grids.{experiment}.word_frequencies",
)
def word_frequencies(request: Request[WordFrequencies]) -> Drawn:
    """Draw counts above and rates of change below, as lines for the corpus and points for the paper."""
    points = with_printed(request)
    figure = request.new_figure(2 * _PANEL_INCHES, [])
    above, below = figure.subplots(2, 1, sharex=True)
    for axes, name, label in ((above, "count", "occurrences"), (below, "change_rate", "rate of change")):
        axes.plot(points["rank"], points[name], color=COLOURS[0], label="here")
        if points[f"printed_{name}"].notna().any():
            axes.plot(points["rank"], points[f"printed_{name}"], "o", color=COLOURS[1], label="3R, Table 5")
        axes.set_ylabel(label)
        axes.grid(axis="y")
    log_scale(above)
    above.legend()
    below.set_xlabel("rank of the word")
    below.margins(x=0)
    return Drawn(points, figure)


def with_printed(request: Request[WordFrequencies]) -> pd.DataFrame:
    """The most frequent words from rank 1, joined with the paper's legible values of the same ranks.

    Raises:
        ConfigError: if the grid's runs train on several corpora.
    """
    (words, *others), (printed,) = request.inputs["words"], request.inputs["printed"]
    if others:
        corpora = " and ".join(path.parent.name for path in (words, *others))
        raise ConfigError(
            f"word_frequencies: runs of the grid train on {corpora}, and the figure shows one corpus. "
            "Leave word_frequencies out, or make a grid for each corpus."
        )
    ranks: dict[int, dict[str, Any]] = {}
    for cell in read_printed(printed.read_bytes(), printed.as_posix()):
        ranks.setdefault(int(cell.group), {"word": cell.row})[cell.column] = cell.value
    theirs = frame(
        [{"rank": rank, **row} for rank, row in ranks.items()],
        rank="int", word="str", frequency="Int64", **{"changing rate": "float"},
    )  # fmt: skip
    theirs.columns = ["rank", "printed_word", "printed_count", "printed_change_rate"]
    ours = read_table(words, WORD_COUNTS, ["rank", "word", "count", "change_rate"]).to_pandas()
    return ours.head(request.config.words).merge(theirs, how="left", on="rank")
