"""Cells of a table of two runs, and the sheet that readers see of them."""

from workflow_scripts.columns import TABLE
from workflow_scripts.reporting.sheets import Sheet

COLUMN = {"suite": "sts", "task": "a", "aggregation": "all", "metric": "spearman", "scale": 100, "digits": 2}
RUNS = ("frozen_cls.mini", "simcse.mini.wiki")


def sheet(rows=None, headings=("A",), alpha=0.05, title="A title", **named):
    """A sheet of these rows, by default a cell of each run and heading."""
    rows = rows or [row(run, name) for run in RUNS for name in headings]
    return Sheet("lab", title, "A paper", alpha, "lab.yaml", rows, headings, **named)


def row(run, heading="A", **changes):
    """A cell of a table; the second run is compared with the first."""
    tested = {"baseline": RUNS[0], "difference": 8.125, "p_value": 0.0421, "detectable": 9.5}
    trained = tested if run != RUNS[0] else {}
    values = {"run": run, "heading": heading, "mean": 58.1049, "sd": 0.14, "seeds": 2, "n": 1225}
    return dict.fromkeys(TABLE.names) | values | {"labels": []} | COLUMN | trained | changes
