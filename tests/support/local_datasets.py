"""Datasets in a folder of local data: those of the configuration, and blocks of toys."""

import os
from pathlib import Path
from typing import Any

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


PAIR_COLUMNS = {name: name for name in ("sentence1", "sentence2", "score")}


def source_of(path: str, reader: str = "delimited", role: str = "all", **options: Any) -> dict[str, Any]:
    """A source of one file, whose hash is not pinned."""
    files = {role: {"path": path, "sha256": None}}
    return {"kind": "local", "files": files, "reader": reader, "options": options}


def block_of(form: str, *sources: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A block of the section ``datasets``."""
    about = dict.fromkeys(("origin", "licence", "citation"), "toy") | {"url": "not stated", "language": "en"}
    return {"form": form, "sources": [*sources], "contract": {"min_rows": 1}, "about": about} | more
