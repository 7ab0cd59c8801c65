"""Compare rows of random embeddings with the paper's, idf rows also crosswise.

Usage: python -m workflow_scripts.tools.compare_idf_rows. Reads the laboratory's committed tables of the extraction
study, which have the paper's numbers next to ours. Random embeddings need no weights of an encoder, so the two should
agree up to the random draw; on clustering they also differ by k-means, which the laboratory starts less often. The
second table is the paper's own: how far its idf rows of the static word vectors B2S are from plain averaging.
"""

import argparse
from typing import NamedTuple

import pandas as pd
from rich.table import Table

from workflow_scripts.audit.printing import console
from workflow_scripts.provenance.closure import ROOT

TABLES = {"STS": (6, 7, 8, 9, 11), "clustering": (14, 15, 16, 17)}
"""Of the laboratory, by kind of task."""
PRINTED = {"STS": range(6, 14), "clustering": range(14, 20)}
"""Of the paper."""
PAIRS = (
    ("avg.", "avg."),
    ("-biases", "-biases"),
    ("idf^T", "idf^T"),
    ("idf^W", "idf^W"),
    ("idf^T", "idf^W"),
    ("idf^W", "idf^T"),
)
"""Our weighting, and the paper's weighting that it is compared with."""


class Agreement(NamedTuple):
    """Absolute differences of one pair of weightings, in points of Spearman times 100 or of accuracy."""

    kind: str
    ours: str
    paper: str
    cells: int
    mean: float
    largest: float


def agreements() -> list[Agreement]:
    """How much our rows of random embeddings differ from the paper's, over all tasks and post-processings of a kind."""
    return [_agreement(kind, ours, paper, _measured(kind)) for kind in TABLES for ours, paper in PAIRS]


def static_rows() -> list[Agreement]:
    """How much the paper's idf rows of B2S and B2S-100 differ from its own plain averages."""
    return [
        _agreement(kind, "avg.", paper, _printed(kind)) for kind in PRINTED for paper in ("idf^T", "idf^W")
    ]


def _agreement(kind: str, ours: str, paper: str, cells: pd.DataFrame) -> Agreement:
    """Differences between the columns ``ours`` of one weighting and ``theirs`` of another."""
    off = (cells.loc[ours]["ours"] - cells.loc[paper]["theirs"]).abs().dropna()
    return Agreement(kind, ours, paper, len(off), off.mean(), off.max())


def _measured(kind: str) -> pd.DataFrame:
    folder = ROOT / "resources/laboratory"
    cells = pd.concat(pd.read_csv(folder / f"extraction_table{number}.csv") for number in TABLES[kind])
    cells = cells[cells["heading"] == "RE"].dropna(subset=["mean", "published"])
    # In the CSV, text that a spreadsheet would evaluate starts with an apostrophe.
    cells = cells.assign(ours=cells["mean"], theirs=cells["published"])
    return _indexed(cells, cells["run"].str.removeprefix("'"), ["task"])


def _printed(kind: str) -> pd.DataFrame:
    folder = ROOT / "resources/published"
    cells = pd.concat(pd.read_csv(folder / f"extraction_table{number}.csv") for number in PRINTED[kind])
    cells = cells[cells["column"].isin(["B2S", "B2S-100"])]
    return _indexed(
        cells.assign(ours=cells["value"], theirs=cells["value"]), cells["row"], ["group", "column"]
    )


def _indexed(cells: pd.DataFrame, rows: "pd.Series[str]", keys: list[str]) -> pd.DataFrame:
    """Cells by weighting, ``keys`` and post-processing, which rows name as ``idf^T + zscore``."""
    names = rows.str.split(" + ", regex=False)
    cells = cells.assign(weighting=names.str[0], postprocessing=names.str[1].fillna(""))
    return cells.set_index(["weighting", *keys, "postprocessing"]).sort_index()


def main() -> None:
    """Print both tables."""
    argparse.ArgumentParser(
        prog="python -m workflow_scripts.tools.compare_idf_rows",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args()
    out = console()
    ours = Table(
        "tasks", "our weighting", "the paper's row", "cells", "mean", "largest", title="Random embeddings"
    )
    for one in agreements():
        ours.add_row(one.kind, one.ours, one.paper, str(one.cells), f"{one.mean:.2f}", f"{one.largest:.1f}")
    out.print(ours)
    theirs = Table(
        "tasks", "the paper's row", "cells", "mean", "largest", title="B2S against its own plain average"
    )
    for one in static_rows():
        theirs.add_row(one.kind, one.paper, str(one.cells), f"{one.mean:.2f}", f"{one.largest:.1f}")
    out.print(theirs)


if __name__ == "__main__":
    main()
