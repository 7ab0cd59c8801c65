"""The closure of a module is every project file that runs when it is imported, and nothing else."""

import json
import os
import subprocess
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import pytest

from workflow_scripts.errors import ConfigError
from workflow_scripts.provenance import closure

MODULES = sorted(
    path.relative_to(closure.PACKAGE).with_suffix("").as_posix().replace("/", ".")
    for path in closure.PACKAGE.rglob("*.py")
    if path.name not in ("__init__.py", "__main__.py")
)


NO_JOBS = {"verbs.records"}
"""Run by hand, and import modules by name."""


def file_of(module):
    return Path("workflow_scripts", *module.split(".")).with_suffix(".py").as_posix()


@pytest.mark.parametrize(
    "statement",
    [
        "import pkg.library",
        "import pkg.library as other",
        "from pkg import library",
        "from pkg.library import function",
        "def later():\n    from pkg.library import function",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pkg.library",
    ],
)
def test_an_import_is_followed_however_it_is_written(tmp_path, monkeypatch, statement):
    monkeypatch.setattr(closure, "ROOT", tmp_path)
    monkeypatch.setattr(closure, "PACKAGE", tmp_path / "pkg")
    for names in (closure._closure, closure._files):
        names.cache_clear()  # of the statement before
    (tmp_path / "pkg").mkdir()
    for name, text in {"__init__": "", "entry": statement, "library": "", "unused": ""}.items():
        (tmp_path / f"pkg/{name}.py").write_text(text)
    assert closure.code_files("entry") == ["pkg/__init__.py", "pkg/entry.py", "pkg/library.py"]


def test_a_missing_module_is_an_error_and_no_empty_closure():
    """A module that does not exist is an error and no empty closure."""
    with pytest.raises(
        ConfigError, match=r"jobs\.train_encodr: no file workflow_scripts/jobs/train_encodr\.py"
    ):
        closure.code_files("jobs.train_encodr")
    with pytest.raises(ConfigError, match=r"methods\.simce: no file workflow_scripts/methods/simce\.py"):
        closure.packages("jobs.train_encoder", "methods.simce")


def test_packages_are_the_distributions_that_the_closure_imports():
    found = closure.packages("provenance.artefacts")
    assert found["pyarrow"] == version("pyarrow")
    assert "torch" not in found
    assert not closure.packages(*MODULES).keys() & closure.UNKEYED_PACKAGES
    assert list(found) == sorted(found)
    assert closure.packages("errors") == {}


IMPORT_EACH = """
import contextlib, importlib, json, os, pkgutil, sys, traceback
modules, foreign = json.load(sys.stdin)
for name in foreign:
    with contextlib.suppress(ImportError, AttributeError):
        pkgutil.resolve_name(name)
for module in modules:
    sys.stdout.flush()
    child = os.fork()
    if not child:
        try:
            importlib.import_module(f"workflow_scripts.{module}")
            ours = [m for name, m in sys.modules.items() if name.split(".")[0] == "workflow_scripts"]
            print(json.dumps([module, sorted(os.path.relpath(m.__file__) for m in ours)]))
        except BaseException:
            print(json.dumps([module, traceback.format_exc()]))
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
"""


def imported_at_run_time(modules):
    """Map each module to the project files that importing it alone really loads.

    Each is imported in a child forked from one process that holds what others wrote already.
    """
    names = {name for path in closure._closure(tuple(MODULES)) for name in closure._imported_names(path)}
    external = sorted(name for name in names if name.split(".")[0] not in {"workflow_scripts", "__future__"})
    run = subprocess.run(
        [sys.executable, "-c", IMPORT_EACH],
        input=json.dumps([modules, external]),
        capture_output=True,
        text=True,
        check=True,
        cwd=closure.ROOT,
        env={**os.environ, "PYTHONPATH": str(closure.ROOT), "OMP_NUM_THREADS": "1"},
    )
    return dict(json.loads(line) for line in run.stdout.splitlines())


@pytest.mark.slow
def test_every_file_loaded_at_run_time_is_in_the_closure():
    """Of modules that no other one imports: scripts of jobs, and what these load by name."""
    of_jobs = {module: {*closure.code_files(module)} for module in MODULES if module not in NO_JOBS}
    imported_by = Counter(file for files in of_jobs.values() for file in files)
    entries = [module for module in of_jobs if imported_by[file_of(module)] == 1]
    assert len(entries) > 5
    for module, loaded in imported_at_run_time(entries).items():
        assert isinstance(loaded, list), loaded
        assert file_of(module) in loaded, module
        assert {*loaded} <= of_jobs[module], module


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1", "x = 1.0"),
        ("x = 1", "x = 2"),
        ('x = "a"', 'x = "b"'),
        ("def f(x=1): ...", "def f(x=2): ..."),
        ("a(); b()", "b(); a()"),
        ("class A:\n    x: int", "class A:\n    x: float"),
        ("f = lambda: 1", "f = lambda: 2"),
        ("if a:\n    b()\nelse:\n    c()", "if a:\n    b()"),
        ('f"{x}"', 'f"{y}"'),
    ],
)
def test_whatever_python_would_run_has_a_meaning(before, after):
    code_hashes = [
        closure.code_hash_of(source.encode(), "workflow_scripts/made.py") for source in (before, after)
    ]
    assert code_hashes[0] != code_hashes[1]


def test_modules_that_decide_no_result_hold_no_data():
    """Modules that are left out of the key import only Python itself and this package."""
    for file in closure.UNKEYED:
        imported = {name.split(".")[0] for name in closure._imported_names(closure.PACKAGE / file)}
        assert imported <= {*sys.stdlib_module_names, "workflow_scripts"}, file


def test_named_settings_count_with_the_definitions_that_they_use():
    """Without the alternatives of a readout: a job names the one that its settings have chosen."""
    found = {unit.partition(":")[2] for unit in closure.code_hashes("settings.methods.SimCSE")}
    assert {"SimCSE", "Contrastive", "StartsFrom", "AnyReadout"} <= found
    assert "S2Sent" not in found


def test_a_module_counts_with_the_settings_that_it_imports():
    found = closure.code_hashes("evaluation.clustering").keys()
    assert "workflow_scripts/settings/suites.py:Clustering" in found
    assert "workflow_scripts/columns.py:SCORES" in found
    assert "workflow_scripts/settings/suites.py:Transfer" not in found


SOURCE = """
LIMIT = 3

class Part(Settings):
    size: int = 1

class Whole(Part):
    reads: ClassVar[tuple[str, ...]] = ("a",)
    part: Part
    rate: float = Field(default=0.5, gt=0, description="A rate.")

    def value_errors(self):
        yield "never"

    @property
    def half(self):
        return self.rate / 2 + LIMIT
"""
EDITS_OF_SETTINGS = {
    "a description": (("A rate.", "The rate."), set()),
    "a range": (("gt=0", "ge=0"), set()),
    "a type": (("rate: float", "rate: int"), set()),
    "what is refused": (("never", "always"), set()),
    "a default": (("default=0.5", "default=0.25"), {"Whole"}),
    "a default of a part": (("size: int = 1", "size: int = 2"), {"Part"}),
    "what is computed": (("/ 2", "/ 3"), {"Whole"}),
    "a constant": (("LIMIT = 3", "LIMIT = 4"), {"LIMIT"}),
    "what a class says of itself": (('("a",)', '("b",)'), {"Whole"}),
}


@pytest.mark.parametrize(("edit", "changed"), EDITS_OF_SETTINGS.values(), ids=EDITS_OF_SETTINGS)
def test_defaults_and_methods_count_and_restrictions_do_not(edit, changed):
    """Defaults and methods have a meaning and restrictions have none."""
    before, after = SOURCE.encode(), SOURCE.replace(*edit).encode()
    places = {name: f"{closure.SETTINGS}made.py:{name}" for name in ("LIMIT", "Part", "Whole")}
    different = {name for name, place in places.items()
                 if closure.code_hash_of(before, place) != closure.code_hash_of(after, place)}  # fmt: skip
    assert before != after
    assert different == changed


def test_packages_below_a_library_are_packages_of_the_job():
    """A job that loads an encoder depends on the version of tokenizers, even if it does not import it."""
    for job in ("jobs.train_encoder", "evaluation.task_by_task", "jobs.continue_mlm"):
        found = closure.packages(job)
        assert {"torch", "transformers", "tokenizers", "safetensors", "numpy"} <= found.keys()
        assert found["tokenizers"] == version("tokenizers")
