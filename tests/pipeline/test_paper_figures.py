"""The papers' figures are made by the paper's configuration alone."""

import json
import re

import pytest
import yaml

from tests.planning import ROOT, copy_tree, snakemake
from workflow_scripts.graph.call import CALLS

ROW = re.compile(r"^\| ([^|]+) \| (?:`(\w+)`)? ?\| `([\w.]+)` \| `([\w./]+)` \| `(\w+)` \|$", re.MULTILINE)
LISTED = ROW.findall((ROOT / "config/experiments/README.md").read_text("utf-8"))
assert len(LISTED) == 30


@pytest.fixture
def planned(tmp_path_factory):
    """Entry script of every file that the paper's study would make, its grids cut to one seed."""
    folder = copy_tree(tmp_path_factory.mktemp("paper"))
    for file in (folder / "config/experiments").glob("*.yaml"):
        file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | {"seeds": [1]}))
    report = "results/paper/report.html"
    code, printed = snakemake(folder, "-n", "-p", report, "--configfile", "config/config.yaml")
    assert code == 0, printed
    made = {}
    for rule, text in CALLS.findall(printed):
        told = json.loads(text)
        if rule == "draw_figures":
            folder = f"results/paper/figures/{told['files']['wildcards']['experiment']}"
            made |= {f"{folder}/{figure}.svg": rule for figure in told["settings"]["figures"]}
        elif "table" in (outputs := told["files"]["outputs"]):
            made[outputs["table"]] = rule
    return made


def test_every_figure_of_a_paper_is_planned_by_the_rule_and_asked_for_by_the_key(planned):
    assert [row for row in LISTED if planned.get(f"results/paper/{row[3]}") != row[4]] == []
    grids = {
        grid: yaml.safe_load((ROOT / f"config/experiments/{grid}.yaml").read_text())
        for _, grid, *_ in LISTED
        if grid
    }
    assert [row for row in LISTED if row[1] and row[2] not in grids[row[1]]] == []
