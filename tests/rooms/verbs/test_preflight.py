"""Preflight: green where a study can run, red with a remedy where it cannot."""

import pytest

from tests.planning import DEMO, ROOT, run
from workflow_scripts.verbs.preflight import disk_findings, package_findings


def test_a_package_of_another_version_is_named(tmp_path):
    lock = tmp_path / "requirements.lock"
    lock.write_text("# pinned\npytest==0.1\nno-such-package==1.0\n")
    (line,) = package_findings(lock)
    assert line == (
        f"packages: pytest {pytest.__version__}, pinned 0.1; no-such-package not installed, pinned 1.0. "
        "Run pip install -r requirements.lock in .venv."
    )
    lock.write_text(f"pytest=={pytest.__version__}\n")
    assert not list(package_findings(lock))


def test_a_full_disk_is_red():
    assert not list(disk_findings(10.0, 20.0))
    assert "20 GB free, about 1,000 GB planned. Free some" in next(disk_findings(1000.0, 20.0))


def preflight(*arguments):
    return run(ROOT, "-m", "workflow_scripts", "preflight", *arguments)


def test_the_demo_can_run_here():
    answer = preflight("--configfile", DEMO)
    assert answer.returncode == 0, answer.stdout
    *tables, packages, configuration, needs, disk, said = answer.stdout.splitlines()
    assert all(line.startswith("ok   ") for line in (packages, configuration, needs, disk))
    assert said == "It can run here to its end." and any("package:" in line for line in tables)


def test_every_mistake_of_a_configuration_is_a_red_line(tmp_path):
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text("exemplar_pools: [tooy]\nextraction: {encoder: minilmm}\n")
    answer = preflight("--configfile", DEMO, str(overlay))
    assert answer.returncode == 1
    red = [line for line in answer.stdout.splitlines() if line.startswith("FAIL ")]
    assert [line.split(": ")[:2] for line in red] == [
        [f"FAIL {overlay}:1", "exemplar_pools"],
        [f"FAIL {overlay}:2", "extraction.encoder"],
    ]
    assert red[1].endswith("Did you mean minilm?")
