"""Printed numbers of the papers, and reasons for those without a run, from the repository's files."""

from workflow_scripts.data.printed import read_printed
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.reporting.coverage import read_ledger
from workflow_scripts.settings.grids import PAPERS, paper_of


def cells():
    """Every number that the papers print."""
    files = sorted((ROOT / "resources/published").glob("*.csv"))
    found = [cell for file in files for cell in read_printed(file.read_bytes(), file.as_posix())]
    return [cell for cell in found if paper_of(cell.table) in PAPERS]


def ledgers():
    """Reasons and panels of each paper."""
    files = {paper: ROOT / f"resources/ledger/{paper}.yaml" for paper in PAPERS}
    return {paper: read_ledger(file.read_text("utf-8"), str(file)) for paper, file in files.items()}
