"""The settings of one experiment: its grid of runs, its table and its figures."""

from pathlib import Path

from workflow_scripts.reporting.records import record_of
from workflow_scripts.settings.grids import Experiment


def experiment_of(table: Path) -> Experiment:
    """The grid that the table at ``table`` was made for, as its record tells."""
    return Experiment.parse(record_of(table).settings["experiment"], f"{table}: experiment")
