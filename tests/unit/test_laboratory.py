"""The laboratory's settings follow from its own tables, which are kept in resources/laboratory."""

import csv
import re

import pytest
import yaml

from tests.planning import ROOT

OVERLAY = yaml.safe_load((ROOT / "config/minilm.yaml").read_text("utf-8"))
READOUTS = yaml.safe_load((ROOT / "config/experiments/lab_readouts.yaml").read_text("utf-8"))
RATES = ("lab_rates", "lab_twin_rates")
RATE = re.compile(r"\.learning_rate([\dpe+-]+)$")


def measured(table: str) -> dict[str, dict[float, float]]:
    """Development scores by run and learning rate."""
    found: dict[str, dict[float, float]] = {}
    with (ROOT / f"resources/laboratory/{table}.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            rate = float(RATE.search(row["run"])[1].replace("p", "."))
            found.setdefault(RATE.sub("", row["run"]), {})[rate] = float(row["mean"])
    return found


def configured(run: str) -> float:
    """The rate with which other tables train a run."""
    method, *_, tag = run.split(".")
    if tag == "last1":  # SimCSE of averages, a variant with a rate of its own
        (overrides,) = [one["overrides"] for one in READOUTS["runs"] if one.get("tag") == tag]
        return overrides["training"]["learning_rate"]
    return OVERLAY["methods"][method]["training"]["learning_rate"]


@pytest.mark.parametrize("table", RATES)
def test_every_method_has_the_rate_of_its_highest_development_score(table):
    for run, scores in measured(table).items():
        assert sorted(scores) == [3e-5, 1e-4, 3e-4]
        assert configured(run) == max(scores, key=lambda rate: scores[rate]), run


def test_methods_without_a_row_take_the_rate_of_the_method_below_them():
    methods = OVERLAY["methods"]
    for method in ("informin_cl", "sscl", "supervised_simcse"):
        below, above = (methods[name]["training"]["learning_rate"] for name in (method, f"{method}_3r"))
        assert below == above


@pytest.mark.parametrize("table", RATES)
def test_the_page_has_the_scores_of_the_tables_with_the_highest_in_bold(table):
    page = (ROOT / "docs/laboratory.md").read_text("utf-8")
    for run, scores in measured(table).items():
        best = max(scores.values())
        cells = [
            f"**{scores[rate]:.2f}**" if scores[rate] == best else f"{scores[rate]:.2f}"
            for rate in sorted(scores)
        ]
        assert f"| `{run}` | {' | '.join(cells)} |" in page
