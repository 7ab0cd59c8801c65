"""Snakemake's own plans; a fork saves starting it again for each question."""

import contextlib
import gc
import importlib
import importlib.metadata
import io
import multiprocessing
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from workflow_scripts.graph.checks import open_study, read_grids
from workflow_scripts.graph.configuration import load_config
from workflow_scripts.graph.study import Study
from workflow_scripts.settings.grids import GridBlock, Run
from workflow_scripts.settings.study import Configuration, read_run

ROOT = Path(__file__).resolve().parents[2]
TREE = (
    "Snakefile",
    "rules",
    "workflow_scripts",
    "config",
    "resources",
    "profiles",
    "slurm",
    "pyproject.toml",
)
DEMO = "config/demo.yaml"
PLAIN = os.environ.get("SEMBLANCE_TEST_PROCESSES") == "plain"
"""Whether Snakemake and Python are started as a user starts them, and not forked."""


def copy_tree(folder: Path) -> Path:
    """Copy the pipeline, without results, into ``folder``."""
    for name in TREE:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    return folder


_FORK = multiprocessing.get_context("fork")
_LOADED = (
    "snakemake.api", "snakemake.workflow", "snakemake.dag", "snakemake.scheduling.job_scheduler", "smart_open", "requests",
)  # fmt: skip
"""Modules that each child would load."""


def snakemake(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run ``snakemake`` in ``folder``; returns its exit code and all it printed. Its jobs are forks, too."""
    from tests.support.fork_server import programs

    if PLAIN:
        command = [programs() / "snakemake", *arguments]
        done = subprocess.run(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        return done.returncode, done.stdout
    prepare()
    path = os.environ["PATH"]
    if "--cores" in arguments and "--touch" not in arguments:
        path = f"{programs()}:{path}"
    reader, writer = _FORK.Pipe(duplex=False)
    child = _FORK.Process(target=_child, args=(writer, folder, arguments, path))
    child.start()
    writer.close()
    code, printed = reader.recv()
    child.join()
    return code, printed


@cache
def prepare() -> None:
    """Do before the first fork what each child would do again: half of a small dry run of Snakemake."""
    from snakemake.cli import get_argument_parser

    get_argument_parser()  # looks for plugins, of which it takes note
    for name in _LOADED:
        importlib.import_module(name)
    yaml.FullLoader = yaml.CFullLoader  # the same language, read by LibYAML
    importlib.metadata.packages_distributions = cache(importlib.metadata.packages_distributions)
    importlib.metadata.packages_distributions()


def _child(writer, folder: Path, arguments: tuple[str, ...], path: str) -> None:
    gc.disable()  # a short life, and each collection would look at, and so copy, all that the parent has loaded
    os.chdir(folder)
    os.environ["PATH"] = path
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = False  # the folder is the test's own, and its next question finds it compiled
    for name in [name for name in sys.modules if name.partition(".")[0] == "workflow_scripts"]:
        del sys.modules[name]
    printed, code = io.StringIO(), 0
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        from snakemake.cli import main

        try:
            sys.argv = ["snakemake", *arguments]
            main(list(arguments))
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
            if isinstance(stop.code, str):
                printed.write(stop.code)
    writer.send((code or 0, printed.getvalue()))


def planned_jobs(folder: Path, *arguments: str, configfile: str = DEMO) -> dict[str, int]:
    """Rules that a run would execute, and how many jobs of each; the target rule is left out."""
    return _rules_in(_dry_run(folder, *arguments, configfile=configfile))


def planned_by_experiment(folder: Path, *arguments: str, configfile: str = DEMO) -> dict[str, int]:
    """As ``planned_jobs``, with a key for the figures of each experiment: ``draw_figures:demo``."""
    printed = _dry_run(folder, *arguments, configfile=configfile)
    planned = _rules_in(printed)
    drawn = re.findall(r"^Job \d+: Draw the figures of (\w+); log: ", printed, flags=re.MULTILINE)
    assert planned.pop("draw_figures", 0) == len(drawn)
    return planned | Counter(f"draw_figures:{experiment}" for experiment in drawn)


def _dry_run(folder: Path, *arguments: str, configfile: str) -> str:
    code, printed = snakemake(folder, "-n", "--configfile", configfile, *arguments)
    assert code == 0, printed
    return printed


def _rules_in(printed: str) -> dict[str, int]:
    """Counts of the table that ends a dry run."""
    if "Nothing to be done" in printed:
        return {}
    table = printed.split("Job stats:", 1)[1].split("total", 1)[0]
    counts = re.findall(r"^(\w+) +(\d+)$", table, flags=re.MULTILINE)
    return {rule: int(number) for rule, number in counts if rule != "all"}


def outputs(folder: Path, configfile: str = DEMO) -> list[str]:
    """Every file that a complete run makes."""
    _code, printed = snakemake(folder, "--summary", "--configfile", configfile)
    assert "output_file\t" in printed, printed
    rows = printed.split("output_file\t", 1)[1].splitlines()[1:]
    return [row.split("\t")[0] for row in rows if "\t" in row]


def pretend_finished(folder: Path, configfile: str = DEMO) -> None:
    """Give ``folder`` placeholders of all outputs, and Snakemake's records of having made them."""
    for path in outputs(folder, configfile):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(path)
    code, printed = snakemake(folder, "--touch", "--forceall", "--cores", "1", "--configfile", configfile)
    assert code == 0, printed


def set_at(part: Any, path: str, value: Any) -> None:
    """Set a part of a configuration; ``path`` has keys, which may be new, and numbers of lists between slashes."""
    *keys, last = path.split("/")
    for key in keys:
        part = part[int(key)] if isinstance(part, list) else part.setdefault(key, {})
    part[last] = value


@contextlib.contextmanager
def holding(file: Path, text: str | None) -> Iterator[None]:
    """A file with some text, or gone, as long as it lasts; afterwards it is as it was, and of its old date."""
    before = (file.read_text(), file.stat().st_mtime) if file.exists() else None
    file.unlink(missing_ok=True) if text is None else file.write_text(text)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
        if before:
            file.write_text(before[0])
            os.utime(file, (before[1], before[1]))


def run(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python in ``folder``; what it starts are forks, as it is itself."""
    from tests.support.fork_server import programs

    return subprocess.run(
        [programs() / "python", *command],
        cwd=folder,
        env=os.environ | {"PATH": f"{programs()}:{os.environ['PATH']}"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def run_alone(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python in ``folder`` in a process that has loaded nothing."""
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False
    )  # fmt: skip


def merged_config(overlay: str) -> dict:
    """The configuration of one of this project's studies."""
    return pickle.loads(_merged(overlay))


@cache
def _merged(overlay: str) -> bytes:
    return pickle.dumps(load_config(ROOT, [ROOT / overlay]))


def settings_with(overlay: str = DEMO, **sections: Any) -> Configuration:
    """A study's configuration with some sections in place of its own."""
    return Configuration.strictly(merged_config(overlay) | sections)


def grids_in(config: dict) -> dict[str, GridBlock]:
    """The grids that a configuration asks for."""
    return {name: GridBlock.strictly(grid) for name, grid in read_grids(config, ROOT / "config")[0].items()}


def expanded(grid: dict[str, Any]) -> dict[str, Any]:
    """A grid's block as the job of its table is passed it."""
    return GridBlock.strictly(grid).experiment.model_dump(mode="json")


def settings_of_run(settings: Configuration, run: Run) -> dict[str, Any]:
    """The settings of a run, as its job is passed them."""
    found, mistakes = read_run(settings, run)
    assert found, mistakes
    return found.model_dump(mode="json")


def study_in(folder: Path, configfiles: Iterable[str | Path]) -> Study:
    """The study that a Snakefile sees with these files, if all that is optional can be had."""
    return replace(open_study(load_config(folder, configfiles), folder), gaps={})
