"""Hold rows of random embeddings to the paper's, idf also crosswise: python -m workflow_scripts.compare_idf_rows.

Reads the laboratory's committed tables of the extraction study, in which each of our numbers stands beside the
paper's. Random embeddings need no weights, so the two should agree up to the draw.
"""

import argparse
from typing import NamedTuple

import pandas as pd
from rich.console import Console
from rich.table import Table

from workflow_scripts.closure import ROOT

TABLES = ("table6", "table7", "table8", "table9", "table11")
PAIRS = (
    ("avg.", "avg."),
    ("-biases", "-biases"),
    ("idf^T", "idf^T"),
    ("idf^W", "idf^W"),
    ("idf^T", "idf^W"),
    ("idf^W", "idf^T"),
)
"""Our weighting, and the paper's that it is held to."""


class Agreement(NamedTuple):
    """Absolute differences of one pair of weightings, in points of Spearman times 100."""

    ours: str
    paper: str
    cells: int
    mean: float
    largest: float


def agreements() -> list[Agreement]:
    """How far our rows lie from the paper's, over all tasks and post-processings."""
    folder = ROOT / "resources/laboratory"
    cells = pd.concat(pd.read_csv(folder / f"extraction_{name}.csv") for name in TABLES)
    cells = cells[cells["heading"] == "RE"].dropna(subset=["mean", "published"])
    # A CSV opened in a spreadsheet must not compute what starts with a sign, so a quote stands before it.
    names = cells["run"].str.removeprefix("'").str.split(" + ", regex=False)
    cells = cells.assign(weighting=names.str[0], shaping=names.str[1].fillna(""))
    cells = cells.set_index(["weighting", "task", "shaping"])
    found = []
    for ours, paper in PAIRS:
        off = (cells.loc[ours]["mean"] - cells.loc[paper]["published"]).abs()
        found.append(Agreement(ours, paper, len(off), off.mean(), off.max()))
    return found


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(
        prog="python -m workflow_scripts.compare_idf_rows", description=__doc__
    ).parse_args()
    table = Table("our weighting", "the paper's row", "cells", "mean", "largest", title="Random embeddings")
    for one in agreements():
        table.add_row(one.ours, one.paper, str(one.cells), f"{one.mean:.2f}", f"{one.largest:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
