"""Tables with the headings they are laid out by, from whatever rule made them."""

from pathlib import Path
from typing import NamedTuple

from workflow_scripts.errors import DataError
from workflow_scripts.evaluation.significance import Config as Significance
from workflow_scripts.reporting.dataset_statistics import Statistics
from workflow_scripts.reporting.experiment import Experiment
from workflow_scripts.reporting.extraction_cells import Names
from workflow_scripts.reporting.extraction_tables import ExtractionTable
from workflow_scripts.reporting.records import record_of

_NO_TESTS = 0.05  # level of a table that tests nothing


class Described(NamedTuple):
    """A table's name, its headings, the level of its tests, and the file that asks for it."""

    name: str
    experiment: Experiment
    alpha: float
    settings: str


def described(path: Path) -> Described:
    """Read from a table's record how it is laid out.

    Raises:
        DataError: if the file is no table.
    """
    record = record_of(path)
    if record.rule == "make_table":
        name = record.wildcards["experiment"]
        experiment = Experiment.parse(record.settings["experiment"], f"{path}: experiment")
        significance = Significance.parse(record.settings["significance"], f"{path}: significance")
        return Described(name, experiment, significance.alpha, f"config/experiments/{name}.yaml")
    if record.rule == "tabulate_extraction":
        table = ExtractionTable.parse(record.settings["table"], f"{path}: table")
        names = Names.parse(record.settings["names"], f"{path}: names")
        return Described(
            record.wildcards["table"], table.described(names), _NO_TESTS, "config/extraction.yaml"
        )
    if record.rule == "describe_datasets":
        name = record.wildcards["statistics"]
        statistics = Statistics.parse(record.settings["table"], f"{path}: table")
        return Described(name, statistics.described(), _NO_TESTS, "config/extraction.yaml")
    raise DataError(f"{path}: made by {record.rule}. Give files of results/<study>/tables.")
