"""--help of everything that a person calls says what it is and runs nothing."""

import subprocess

import pytest

from tests.planning import ROOT, run

TOOLS = [
    *(
        f"workflow_scripts.tools.{path.stem}"
        for path in sorted((ROOT / "workflow_scripts/tools").glob("[a-z]*.py"))
    ),
    "workflow_scripts.audit",
    "benchmarks",
    "tests.faults",
]


def changed_files():
    """What git says of the tree."""
    return subprocess.run(
        ["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize("module", TOOLS)
def test_help_says_what_a_tool_is_and_runs_nothing(module):
    before = changed_files()
    asked = run(ROOT, "-m", module, "--help")
    assert asked.returncode == 0, asked.stderr
    assert asked.stdout.startswith("usage: ") and not asked.stderr
    assert changed_files() == before


def test_every_benchmark_reads_its_command_line_before_it_runs():
    """Asking each of them would import torch a dozen times."""
    files = [
        path for path in (ROOT / "benchmarks").glob("[a-z]*.py") if "\nCODE = " in path.read_text("utf-8")
    ]
    assert len(files) > 8
    for path in files:
        assert (
            "    run(__doc__, measure" in path.read_text("utf-8").partition('if __name__ == "__main__":\n')[2]
        ), path
    assert "parse_args()" in (ROOT / "benchmarks/harness.py").read_text("utf-8")
