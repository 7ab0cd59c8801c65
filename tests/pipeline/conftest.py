"""One small run of the whole graph, shared by the tests that look at what it made."""

import os
import shutil
from pathlib import Path

import pytest
from filelock import FileLock

from tests.support.short_demo import CONFIGS, SMOKE
from tests.support.snakemake_plans import copy_tree, run


@pytest.fixture(scope="session")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder where the demo graph, cut short, has run from raw text to report; tests must leave it as it is.

    Processes that share the tests share the run: the first makes it, the others wait.
    """
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    folder = shared / "smoke"
    with FileLock(shared / "smoke.lock"):
        if not folder.exists():
            folder.mkdir()
            _run_whole_graph(copy_tree(folder))
    assert (folder / "results/demo/report.html").exists(), "the run failed; another test shows why"
    return folder


def _run_whole_graph(folder: Path) -> None:
    (folder / "config/smoke.yaml").write_text(SMOKE)
    grid = folder / "config/experiments/demo.yaml"
    grid.write_text(grid.read_text().replace("seeds: [1, 2]", "seeds: [1]"))
    command = ["-m", "snakemake", "--cores", "2", "--quiet", "rules", "--configfile", *CONFIGS]
    finished = run(folder, *command)
    assert finished.returncode == 0, finished.stdout[-3000:] + finished.stderr[-3000:]


@pytest.fixture
def smoke_copy(smoke: Path, tmp_path: Path) -> Path:
    """A copy of the finished folder with all its dates new, as a fresh clone with copied results has.

    What jobs keep is there once more by hard links, here as in the folder, and weights are those of the folder, since
    nothing writes them in place: gigabytes less to write.
    """
    copy, copied = tmp_path / "copy", dict[int, str]()

    def copy_once(source: str, target: str) -> None:
        number = Path(source).stat().st_ino
        if number in copied:
            os.link(copied[number], target)
        elif source.endswith(".safetensors"):
            os.link(source, target)
        else:
            copied[number] = shutil.copyfile(source, target)

    passing = shutil.ignore_patterns("*.pyc.*", "*.tmp")  # which another test's jobs may be writing there
    shutil.copytree(smoke, copy, copy_function=copy_once, symlinks=True, ignore=passing)
    return copy


@pytest.fixture
def bare(smoke_copy: Path) -> Path:
    """A copy of the finished folder without Snakemake's own records."""
    shutil.rmtree(smoke_copy / ".snakemake")
    return smoke_copy
