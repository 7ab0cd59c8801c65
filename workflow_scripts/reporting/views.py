"""Tables with all that readers see of them, whichever rule made them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.columns.tables import TABLE
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.reporting.cells import Row
from workflow_scripts.reporting.extraction_tables import shown
from workflow_scripts.reporting.records import record_of
from workflow_scripts.settings.extraction.cells import Names
from workflow_scripts.settings.extraction.tables import ExtractionTable

_NAMED_BY = {
    "make_table": "experiment",
    "tabulate_times": "experiment",
    "tabulate_extraction": "table",
    "describe_datasets": "statistics",
}
"""Rules that make tables, and the wildcard that is a table's name."""
_NO_TESTS = 0.05  # level of significance for tables without tests


class View(NamedTuple):
    """One table."""

    name: str
    title: str
    source: str
    """Paper and table."""
    alpha: float
    """Level of its tests."""
    settings: str
    """Configuration file that defines it."""
    rows: Sequence[Row]
    """Its cells (``columns.tables.TABLE``)."""
    headings: Sequence[str]
    """Its columns in order."""
    shown: Mapping[str, str]
    """Rows and columns that readers see under another name."""

    @property
    def of_experiment(self) -> bool:
        """Whether it compares the runs of a grid."""
        return self.settings != "config/extraction.yaml"


def view_of(path: Path, times: Path | None = None) -> View:
    """A table as its file and its record say.

    Args:
        path: Of the table.
        times: Of its measured columns, if it has some.

    Raises:
        DataError: if a file is no table.
    """
    record = record_of(path)
    if record.rule not in _NAMED_BY:
        raise DataError(f"{path}: made by {record.rule}. Give files of results/<study>/tables.")
    rows = [row for part in (path, times) if part for row in read_table(part, TABLE).to_pylist()]
    settings, name = record.settings, record.wildcards[_NAMED_BY[record.rule]]
    block = settings["experiment"] if "experiment" in settings else settings["table"]
    held = dict.fromkeys(row["heading"] for row in rows)
    ordered = [column["heading"] for column in settings.get("experiment", {}).get("columns", ())]
    return View(
        name=name,
        title=block["title"],
        source=block["source"],
        alpha=settings.get("significance", {}).get("alpha", _NO_TESTS),
        settings=f"config/experiments/{name}.yaml" if ordered else "config/extraction.yaml",
        rows=rows,
        headings=[heading for heading in ordered if heading in held] or list(held),
        shown=_shown(path, settings) if record.rule == "tabulate_extraction" else {},
    )


def _shown(path: Path, settings: Mapping[str, Any]) -> dict[str, str]:
    """Rows and columns of a table of the extraction study under another name than the paper's."""
    table = ExtractionTable.parse(settings["table"], f"{path}: table")
    return shown(table, Names.parse(settings["names"], f"{path}: names"))
