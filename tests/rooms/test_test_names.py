"""Names of tests: short, and each once in its file, since Python would keep the second only."""

import ast
from collections import Counter

from tests.support.snakemake_plans import ROOT


def test_names_are_short_and_each_once_in_its_file():
    files = [*(ROOT / "tests").rglob("test_*.py")]
    assert len(files) > 100
    for file in files:
        body = ast.parse(file.read_text()).body
        names = Counter(part.name for part in body if isinstance(part, ast.FunctionDef))
        tests = [name for name in names if name.startswith("test_")]
        assert [name for name in tests if len(name) > 60] == [], file
        assert [name for name in tests if names[name] > 1] == [], file
