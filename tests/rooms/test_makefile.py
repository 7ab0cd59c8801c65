"""Make's targets, with stubs in the place of what they call."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.planning import ROOT

SOUND = (
    "Lints for rule read_dataset (line 46):\n    * Specify a conda environment or container for each rule.:"
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with the Makefile, an environment that is ready, and commands that say what they are called with."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("requirements.lock", "requirements-gpu.lock", ".venv/installed"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("requirements.lock\n")
    for name in ("python", "python3", "pip", "ruff", "mypy", "snakefmt"):
        stub(tmp_path, name, f'echo {name} "$@" >>calls')
    return tmp_path


def stub(tree: Path, name: str, script: str) -> None:
    file = tree / ".venv/bin" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def make(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    (tree / "calls").write_text("")
    return subprocess.run(
        ["make", *arguments], cwd=tree, env=variables, capture_output=True, text=True, check=False
    )


def python_of(version: tuple[int, ...]) -> str:
    """A script that is a Python of some version, as far as the Makefile looks."""
    see = f'exec {sys.executable} -c "import sys; sys.version_info = {version}; $2"'
    return f'if [ "$1" = -c ]; then {see}; fi; echo python3 "$@" >>calls'


def test_an_environment_of_another_lock_and_one_that_failed_are_made_anew(tree):
    gpu, python = "LOCK=requirements-gpu.lock", "PYTHON=.venv/bin/sound"
    stub(tree, "sound", python_of((3, 12, 1)))
    assert make(tree, "environment").returncode == 0 and not (tree / "calls").read_text()
    assert make(tree, "environment", gpu, python).returncode == 0
    made, installed = (tree / "calls").read_text().splitlines()
    assert made == "python3 -m venv --clear .venv"
    assert installed.endswith("--requirement requirements-gpu.lock")
    assert make(tree, "environment", gpu).returncode == 0 and not (tree / "calls").read_text()
    stub(tree, "pip", "exit 1")
    assert make(tree, "environment", "LOCK=requirements.lock", python).returncode
    assert (tree / ".venv/installed").read_text() == "requirements-gpu.lock\n"
    (tree / ".venv/installed").unlink()
    assert make(tree, "environment", python).returncode
    assert (tree / "calls").read_text() == "python3 -m venv --clear .venv\n"


def test_a_python_that_the_lock_is_not_made_for_is_refused_in_one_line(tree):
    (tree / ".venv/installed").unlink()
    stub(tree, "old", python_of((3, 11, 2)))
    done = make(tree, "environment", "PYTHON=.venv/bin/old")
    line, _ = done.stderr.splitlines()  # the other is make's
    assert "is Python 3.11.2, and Semblance needs 3.11.5 to 3.12. Name another: make PYTHON=" in line
    assert done.returncode and not (tree / "calls").read_text()


@pytest.mark.parametrize(
    ("said", "passes"),
    [
        (SOUND, True),
        (f"{SOUND}\n    * Shell command directly uses variable:", False),
        ("Traceback\nFileNotFoundError: config/demo.yaml", False),
    ],
)
def test_a_lint_that_fails_is_no_lint_that_finds_nothing(tree, said, passes):
    stub(tree, "python", f"cat <<'END'\n{said}\nEND\nexit 1")  # which lint does for what it finds as well
    done = make(tree, "check")
    assert (done.returncode == 0) == passes, done.stdout
    assert passes or said.splitlines()[-1] in done.stdout


def test_every_target_is_named_where_a_reader_looks(tree):
    targets = set(re.findall(r"^([\w-]+):.*##", (tree / "Makefile").read_text(), re.MULTILINE))
    pages = [(ROOT / name).read_text() for name in ("README.md", "docs/cluster.md", "CONTRIBUTING.md")]
    assert targets == set(re.findall(r"\bmake ([a-z-]+)(?=[`\s])", "\n".join(pages))) & targets
