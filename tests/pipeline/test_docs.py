"""Every command and snippet of the documentation does what a reader expects: it works."""

import sys
from pathlib import Path

import pytest
import yaml

from tests import docs
from tests.planning import ROOT

PAGES = [
    page
    for page in docs.PAGES
    if page not in docs.RECIPES
    and any(step.use not in ("read", "untried") for step in docs.steps(page.read_text()))
]
OURS = [page for page in docs.RECIPES if page.stem in ("dataset", "table", "figure")]


def merge(below: dict, above: dict) -> dict:
    """Lay one configuration over another, as Snakemake does."""
    both = {key: merge(below[key], above[key]) for key in below.keys() & above.keys()
            if isinstance(below[key], dict) and isinstance(above[key], dict)}  # fmt: skip
    return below | above | both


@pytest.fixture
def clone(smoke_copy: Path) -> Path:
    """A folder as a reader has it after `make demo`, whose demo is the short one."""
    demo = smoke_copy / "config/demo.yaml"
    short = merge(
        *(yaml.safe_load((smoke_copy / f"config/{name}.yaml").read_text()) for name in ("demo", "smoke"))
    )
    demo.write_text(yaml.safe_dump(short))
    (smoke_copy / ".venv").symlink_to(sys.prefix)
    for name in ("Makefile", "requirements.lock", "requirements-gpu.lock", "tests"):
        (smoke_copy / name).symlink_to(ROOT / name)
    return smoke_copy


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_page_can_be_followed(clone, page):
    docs.follow(page, clone)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", OURS, ids=lambda path: path.stem)
def test_a_recipe_works_as_written_with_three_files_at_most(clone, recipe):
    docs.follow(recipe, clone)
    written = [step.note for step in docs.steps(recipe.read_text()) if step.use in ("write", "append")]
    assert 1 <= len(set(written)) <= 3
