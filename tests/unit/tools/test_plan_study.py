"""What a person who mistypes a plan is told."""

import pytest

from tests.planning import DEMO, ROOT, run


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (("--configfile", "nosuch.yaml"), "ConfigError: nosuch.yaml: no such file. Check the path"),
        (("--configfile", str(ROOT / DEMO), "demo"), "ConfigError: demo: no such file. Check the path"),
        (("--rates", "nosuch.yaml"), "ConfigError: nosuch.yaml: no such file. Name one that is"),
        (("--rates", "text"), "ConfigError: text:2: "),
    ],
)
def test_a_file_that_is_not_there_is_one_line(tmp_path, arguments, found):
    (tmp_path / "text").write_text("a: [1")
    said = run(tmp_path, "-m", "workflow_scripts.tools.plan_study", *arguments, PYTHONPATH=str(ROOT))
    assert said.returncode == 1 and said.stderr.startswith(found), said.stderr
    assert len(said.stderr.splitlines()) == 1


def test_nothing_is_cut_in_a_narrow_terminal(tmp_path):
    """Of a number or of the word unknown, the beginning alone says something else."""
    study = ("--configfile", str(ROOT / DEMO))
    said = run(
        tmp_path, "-m", "workflow_scripts.tools.plan_study", *study, PYTHONPATH=str(ROOT), COLUMNS="80"
    )
    assert "Jobs by rule" in said.stdout and "…" not in said.stdout
