"""What plan_study prints of the demo: every job once, papers as targets, errors in one line."""

import json

import pytest

from tests.planning import DEMO, ROOT, planned_jobs, run


@pytest.fixture(scope="module")
def plan():
    """The demo's plan as data."""
    asked = run(ROOT, "-m", "workflow_scripts.plan_study", "--json", "--configfile", DEMO)
    assert asked.returncode == 0, asked.stderr
    return json.loads(asked.stdout)


def test_every_job_is_counted_once_as_snakemake_counts_it(plan, tmp_path):
    counted = {row["rule"]: row["jobs"] for row in plan["rules"]}
    assert counted == planned_jobs(ROOT, "--forceall")
    assert plan["experiments"][-1]["jobs"] == sum(counted.values())


def test_a_paper_is_a_target_of_its_tables_and_figures(plan):
    asked = run(ROOT, "-m", "workflow_scripts.plan_study", "extraction", "--json", "--configfile", DEMO)
    assert asked.returncode == 0, asked.stderr
    (alone,) = (row for row in plan["experiments"] if row["paper"] == "extraction")
    assert json.loads(asked.stdout)["experiments"][-1]["jobs"] == alone["jobs"] > 0


def test_a_target_that_is_not_there_is_one_line(tmp_path):
    asked = run(ROOT, "-m", "workflow_scripts.plan_study", "nothing", "--configfile", DEMO)
    assert asked.returncode == 1 and not asked.stdout
    assert "ConfigError: snakemake cannot plan:" in asked.stderr and "Traceback" not in asked.stderr
