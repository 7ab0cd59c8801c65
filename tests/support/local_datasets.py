"""Datasets of the configuration, from the folder of local data."""

import os
from pathlib import Path

import pyarrow as pa
import yaml

from workflow_scripts.data.datasets import load
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.settings.sources import DatasetBlock


def dataset(name: str) -> pa.Table:
    """The rows of a block of config/datasets.yaml; SEMBLANCE_DATA must be set."""
    block = yaml.safe_load((ROOT / "config/datasets.yaml").read_text("utf-8"))["datasets"][name]
    parsed = DatasetBlock.parse(block, f"datasets.{name}")
    return load(name, parsed, Path(os.environ["SEMBLANCE_DATA"]))[0].table
