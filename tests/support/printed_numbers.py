"""Printed numbers of the papers, and ``resources/ledger``: why a number has no run, and which figure shows a panel.

A row of ``resources/published/*.csv`` says where its counterpart is by ``grid``, ``run`` and ``heading``: a cell of the
grid's table; ``figure: <name>`` as the heading, a point of one of its figures; ``setting: <name>``, a setting of the run.
``resources/ledger/<paper>.yaml`` has the reasons of the other rows, and the panels of figures, which have a grid and the
name of its figure (``table`` for its table), or a reason. A reason is one for every cell that has all of its names.
"""

from functools import cache

import yaml

from workflow_scripts.data.printed import read_printed
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.settings.grids import paper_of

KINDS = {
    "no weights": "a model that only its authors have",
    "not built": "what it takes is known, and this project lacks it",
    "not described": "the text does not say what was done",
    "not legible": "the text at hand does not tell which cell a number belongs to",
    "no result": "nothing that a run could give, as a judgement of people",
}
"""Kinds of reasons."""
NAMES = ("table", "group", "row", "column")
"""Names of a cell, of which a reason has some."""


@cache
def cells(paper):
    """Every number that a paper prints."""
    files = sorted((ROOT / "resources/published").glob("*.csv"))
    found = [cell for file in files for cell in read_printed(file.read_bytes(), file.as_posix())]
    return [cell for cell in found if paper_of(cell.table) == paper]


def ledger(paper):
    """Reasons and panels of a paper."""
    return yaml.safe_load((ROOT / f"resources/ledger/{paper}.yaml").read_text("utf-8"))


def problems(cells, reasons):
    """Cells with neither a run nor a reason, or with both; and reasons that no cell needs."""

    def covers(reason, cell):
        return all(reason[name] == getattr(cell, name) for name in NAMES if name in reason)

    for cell in cells:
        given = [reason["reason"] for reason in reasons if covers(reason, cell)]
        if bool(given) == bool(cell.target):
            yield (
                f"{cell}: a run and a reason, {given[0]}" if given else f"{cell}: neither a run nor a reason"
            )
    for reason in reasons:
        if not any(covers(reason, cell) for cell in cells):
            yield f"{reason['table']}: no cell needs {reason['reason']}"
