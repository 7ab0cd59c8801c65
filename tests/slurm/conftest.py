"""The cluster, started once a session, and what runs on it."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.slurm.node import PREFIX, Job, Node, UnavailableError
from tests.support.snakemake_plans import ROOT

ASKED = "SEMBLANCE_SLURM_TEST"
"""Set by make slurm-test: these tests start daemons and take ten minutes."""


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    """A cluster of one node; skips where this machine can have none."""
    if ASKED not in os.environ:
        pytest.skip(f"starts SLURM; make slurm-test does, or {ASKED}=1")
    node = Node(Path(tempfile.mkdtemp(prefix=PREFIX)))  # which other users can reach
    try:
        node.start()
        yield node
    except UnavailableError as reason:
        pytest.skip(f"no SLURM on this machine: {reason}")
    finally:
        node.stop()
        shutil.rmtree(node.folder, ignore_errors=True)


def give_profile(folder: Path) -> None:
    """Write the profiles as they are, and what a site fills in: GPU jobs have a partition of their own."""
    for name in ("slurm", "profiles"):
        shutil.copytree(ROOT / name, folder / name, dirs_exist_ok=True)
    (folder / "slurm/partitions.yaml").write_text("partitions:\n  main: {}\n  gpu: {max_gpu: 2}\n")


class Driver:
    """One call of ``snakemake --profile slurm`` in a folder."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._file, scripts = folder / "printed", Path(sys.executable).parent
        environment = os.environ | {
            "PATH": f"{scripts}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1",
        }  # fmt: skip
        with self._file.open("w") as printed:
            self.process = subprocess.Popen(
                [scripts / "snakemake", "--profile", "slurm", *options],
                cwd=folder,
                env=environment,
                stdout=printed,
                stderr=subprocess.STDOUT,
            )

    def printed(self) -> str:
        """The text printed so far."""
        return self._file.read_text()

    def ended(self, seconds: float = 600) -> tuple[int, str]:
        """Exit code and output, once it has ended by itself; the plugin can wait for ever."""
        try:
            return self.process.wait(timeout=seconds), self.printed()
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still runs after {seconds} s:\n{self.printed()[-3000:]}") from None


@pytest.fixture(scope="session")
def start(node: Node) -> Iterator[Callable[..., Driver]]:
    """Starts drivers; whichever still runs at the end of the session is killed before the cluster stops."""
    started: list[Driver] = []

    def begin(folder: Path, *options: str) -> Driver:
        started.append(Driver(folder, *options))
        return started[-1]

    yield begin
    for driver in started:
        driver.process.kill()
        driver.process.wait()


def jobs_of(node: Node, start: str) -> list[Job]:
    """Jobs of the queue whose name begins so, in the order of submission."""
    return [job for job in node.jobs() if job.name.startswith(start)]
