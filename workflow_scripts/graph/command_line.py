"""The command line of snakemake: what ``--config`` gives, read as a configuration file is, and whose call it is."""

import sys
from typing import Any

import yaml


def as_in_a_file(value: Any) -> Any:
    """``value`` with every text replaced by what it would be in a YAML file: ``true``, numbers, lists.

    Snakemake leaves words and nested values as text.
    A text that YAML cannot read stays a text, and the check of the configuration says what is wrong with it.
    """
    if isinstance(value, str):
        try:
            return yaml.safe_load(value)
        except yaml.YAMLError:
            return value
    if isinstance(value, dict):
        return {key: as_in_a_file(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_in_a_file(item) for item in value]
    return value


def is_in_job() -> bool:
    """Whether Snakemake was started by Snakemake, to run a job on its own or on another machine."""
    return "--mode" in sys.argv
