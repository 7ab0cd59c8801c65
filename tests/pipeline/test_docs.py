"""Every command and snippet of the documentation does what a reader expects: it works."""

import sys
from pathlib import Path

import pytest
import yaml

from tests.support import doc_blocks
from tests.support.snakemake_plans import ROOT
from workflow_scripts.settings.overrides import laid_over

IN_A_BARE_CLONE = ("method", "readout", "evaluation")
"""Recipes that ``test_adding_parts`` follows."""
PAGES = [
    page
    for page in doc_blocks.PAGES
    if not (page in doc_blocks.RECIPES and page.stem in IN_A_BARE_CLONE)
    and any(step.use not in ("read", "untried") for step in doc_blocks.steps(page.read_text()))
]


@pytest.fixture
def clone(smoke_copy: Path) -> Path:
    """A folder as a reader has it after `make demo`, whose demo is the short one."""
    demo = smoke_copy / "config/demo.yaml"
    above = (smoke_copy / "config/smoke.yaml").read_text()
    demo.write_text(yaml.safe_dump(laid_over(yaml.safe_load(demo.read_text()), yaml.safe_load(above))))
    grid = smoke_copy / "config/experiments/demo.yaml"
    grid.write_text(grid.read_text().replace("seeds: [1]", "seeds: [1, 2]"))
    (smoke_copy / ".venv").symlink_to(sys.prefix)
    for name in ("Makefile", "requirements.lock", "requirements-gpu.lock", "tests"):
        (smoke_copy / name).symlink_to(ROOT / name)
    for file in (ROOT / "benchmarks").glob("*.py"):
        (smoke_copy / "benchmarks" / file.name).symlink_to(file)
    return smoke_copy


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_page_can_be_followed(clone, page):
    doc_blocks.follow(page, clone)
