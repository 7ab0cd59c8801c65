"""After ``audit adopt`` Snakemake plans what the records say, whatever became of its own notes and of dates."""

import json
import os

import pytest
import yaml

from tests.planning import processes_of, run
from tests.smoke import CONFIGS, plan

TEMPLATE = "resources/report/report.html.j2"
WARMER = {"methods": {"simcse_3r": {"k": 3}}}
"""A setting that 3R alone reads."""


def audit(folder, command, *files):
    asked = run(folder, "-m", "workflow_scripts", command, "--json", "--configfile", *CONFIGS, *files)
    assert asked.stdout, asked.stderr
    return json.loads(asked.stdout)


def stale_rules(found):
    return set(processes_of(entry["job"] for entry in found["stale"].values()))


def test_a_copied_study_is_up_to_date(bare):
    assert plan(bare)  # by dates, all that is older than the list of its code
    done = audit(bare, "adopt")
    assert done["taken_away"] == done["missing"] == [] and len(done["noted"]) > 40
    assert plan(bare) == {}


@pytest.mark.slow
def test_a_setting_that_was_changed_meanwhile_is_planned(bare):
    file = bare / "overlay.yaml"
    file.write_text(yaml.safe_dump(WARMER))
    expected = stale_rules(audit(bare, "stale", "overlay.yaml"))
    done = audit(bare, "adopt", "overlay.yaml")
    planned = plan(bare, "overlay.yaml")
    assert set(planned) == expected
    assert planned["train_encoder"] == 1 and "write_report" in planned and "continue_mlm" not in planned
    (kept,) = (bare / "results/demo/runs").glob("*simcse_3r*/seed1/.kept/model")
    assert (kept / "model/record.json").exists() and len(done["taken_away"]) > 5
    assert audit(bare, "adopt", "overlay.yaml")["taken_away"] == []


@pytest.mark.slow
def test_an_input_that_was_edited_under_its_old_date_is_planned(smoke_copy):
    template = smoke_copy / TEMPLATE
    date = (smoke_copy / "results/demo/report.html").stat().st_mtime - 60
    template.write_text(template.read_text().replace("</body>", "<!-- another --></body>"))
    os.utime(template, (date, date))
    assert plan(smoke_copy) == {}
    assert audit(smoke_copy, "adopt")["taken_away"] == ["results/demo/report.html"]
    assert plan(smoke_copy) == {"write_report": 1}
