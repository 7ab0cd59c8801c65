"""How often the words of a corpus occur, by rank, and where the rates of change peak (3R, Table 5).

Words at and around the peaks are printed in the paper; they are drawn next to those of the same rank here.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.figure import Figure

from workflow_scripts.columns.corpora import WORD_COUNTS
from workflow_scripts.errors import ConfigError
from workflow_scripts.figures.base import FigureKind, Request
from workflow_scripts.figures.style import COLOURS
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.reporting.published import read_printed
from workflow_scripts.settings.figures import WordFrequencies

COLUMNS = pa.schema(
    [
        ("rank", pa.int32()),
        ("word", pa.string()),
        ("count", pa.int64()),
        ("change_rate", pa.float64()),
        ("printed_word", pa.string()),
        ("printed_count", pa.int64()),
        ("printed_change_rate", pa.float64()),
    ]
)
"""The most frequent words from rank 1; what the paper prints of a rank is null for most."""

_PANEL_INCHES = 1.9


def points(request: Request[WordFrequencies]) -> pa.Table:
    """The words of the corpus, with the paper's.

    Raises:
        ConfigError: if the grid's runs train on several corpora.
    """
    (words, *others), (printed,) = request.inputs["words"], request.inputs["printed"]
    if others:
        corpora = " and ".join(path.parent.name for path in (words, *others))
        raise ConfigError(
            f"word_frequencies: runs of the grid train on {corpora}, and the figure shows one corpus. "
            "Leave the block out, or make a grid for each."
        )
    return compared_with_printed(read_table(words, WORD_COUNTS), printed_words(printed), request.config.words)


def printed_words(path: Path) -> dict[int, dict[str, Any]]:
    """What the paper prints of each rank: the word, its frequency and its changing rate, where legible."""
    found: dict[int, dict[str, Any]] = {}
    for one in read_printed(path.read_bytes(), path.as_posix()):
        found.setdefault(int(one.group), {"word": one.row})[one.column] = one.value
    return found


def compared_with_printed(words: pa.Table, printed: Mapping[int, Mapping[str, Any]], most: int) -> pa.Table:
    """The first ``most`` words, each with what the paper prints of its rank."""
    rows = []
    for row in words.slice(0, most).to_pylist():
        theirs = printed.get(row["rank"], {})
        rows.append(
            {name: row[name] for name in ("rank", "word", "count", "change_rate")}
            | {
                "printed_word": theirs.get("word"),
                "printed_count": theirs.get("frequency"),
                "printed_change_rate": theirs.get("changing rate"),
            }
        )
    return pa.Table.from_pylist(rows, schema=COLUMNS)


def draw(points: pa.Table, request: Request[WordFrequencies]) -> Figure:
    """Draw counts above and rates of change below, lines for the corpus and points for the paper."""
    figure = request.new_figure(2 * _PANEL_INCHES, [])
    above, below = figure.subplots(2, 1, sharex=True)
    ranks = points["rank"].to_pylist()
    for axes, name, label in ((above, "count", "occurrences"), (below, "change_rate", "rate of change")):
        axes.plot(ranks, points[name].to_pylist(), color=COLOURS[0], label="here")
        theirs = points.filter(pc.is_valid(points[f"printed_{name}"]))
        if len(theirs):
            x, y = theirs["rank"].to_pylist(), theirs[f"printed_{name}"].to_pylist()
            axes.plot(x, y, "o", color=COLOURS[1], label="3R, Table 5")
        axes.set_ylabel(label)
        axes.grid(axis="y")
    above.set_yscale("log")
    above.legend()
    below.set_xlabel("rank of the word")
    below.margins(x=0)
    return figure


KINDS = {
    "word_frequencies": FigureKind(
        columns=COLUMNS,
        title="Words of the corpus by frequency: {title}",
        description="Number of occurrences and rate of change over the rank of a word, the paper's as points.",
        points=points,
        draw=draw,
    )
}
