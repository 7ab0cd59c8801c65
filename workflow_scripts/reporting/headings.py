"""Read tables together with their headings, whichever rule made them."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from workflow_scripts.errors import DataError
from workflow_scripts.reporting.experiment import experiment_of
from workflow_scripts.reporting.extraction_tables import shown
from workflow_scripts.reporting.records import record_of
from workflow_scripts.settings.experiment import Experiment
from workflow_scripts.settings.extraction.cells import Names
from workflow_scripts.settings.extraction.statistics import Statistics
from workflow_scripts.settings.extraction.tables import ExtractionTable
from workflow_scripts.settings.significance import Config as Significance

_NO_TESTS = 0.05  # level of significance for tables without tests


class HeadedTable(NamedTuple):
    """A table's name, its headings, the level of its tests, and the configuration file that defines it."""

    name: str
    experiment: Experiment
    alpha: float
    settings: str
    shown: Mapping[str, str] = MappingProxyType({})
    """Rows and columns that readers see under another name."""


def headings_of(path: Path) -> HeadedTable:
    """Read from a table's record how it is formatted.

    Raises:
        DataError: if the file is not a table.
    """
    record = record_of(path)
    if record.rule in ("make_table", "tabulate_times"):
        name = record.wildcards["experiment"]
        significance = Significance.parse(record.settings["significance"], f"{path}: significance")
        return HeadedTable(name, experiment_of(path), significance.alpha, f"config/experiments/{name}.yaml")
    if record.rule == "tabulate_extraction":
        table = ExtractionTable.parse(record.settings["table"], f"{path}: table")
        names = Names.parse(record.settings["names"], f"{path}: names")
        return HeadedTable(
            record.wildcards["table"],
            table.described(names),
            _NO_TESTS,
            "config/extraction.yaml",
            shown(table, names),
        )
    if record.rule == "describe_datasets":
        name = record.wildcards["statistics"]
        statistics = Statistics.parse(record.settings["table"], f"{path}: table")
        return HeadedTable(name, statistics.described(), _NO_TESTS, "config/extraction.yaml")
    raise DataError(f"{path}: made by {record.rule}. Give files of results/<study>/tables.")
