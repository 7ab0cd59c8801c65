"""The laboratory's settings follow from its own tables, which are kept in resources/laboratory."""

import csv
import math
import re

import pandas as pd
import pytest
import yaml

from tests.support import doc_blocks
from tests.support.doc_blocks import systems_table
from tests.support.snakemake_plans import ROOT
from workflow_scripts.evaluation.significance import detectable_difference
from workflow_scripts.reporting.cells import brief
from workflow_scripts.settings.grids import GridBlock

OVERLAY = yaml.safe_load((ROOT / "config/minilm.yaml").read_text("utf-8"))
READOUTS = yaml.safe_load((ROOT / "config/experiments/lab_readouts.yaml").read_text("utf-8"))
PAGE, README = ((ROOT / name).read_text("utf-8") for name in ("docs/laboratory.md", "README.md"))
RATES = ("lab_rates", "lab_twin_rates")
RATE = re.compile(r"\.learning_rate([\dpe+-]+)$")


def rows_in(table: str) -> list[dict[str, str]]:
    """Rows of a CSV below the repository's root."""
    return list(csv.DictReader((ROOT / table).read_text("utf-8").splitlines()))


def measured(table: str) -> dict[str, dict[float, float]]:
    """Development scores by run and learning rate."""
    found: dict[str, dict[float, float]] = {}
    for row in rows_in(f"resources/laboratory/{table}.csv"):
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


def tried(table: str) -> dict[str, list[float]]:
    """Learning rates by run, as the experiment lists them."""
    grid = GridBlock.strictly(yaml.safe_load((ROOT / f"config/experiments/{table}.yaml").read_text("utf-8")))
    rates: dict[str, list[float]] = {}
    for run, one in grid.expanded.items():
        _, values = one.point
        rates.setdefault(RATE.sub("", run), []).append(values["training.learning_rate"])
    return rates


@pytest.mark.parametrize("table", RATES)
def test_every_method_has_the_best_rate_on_development(table):
    """Of the rates that the table has, and not at the edge of those that the experiment lists now."""
    listed = tried(table)
    scores = {run: by_rate for run, by_rate in measured(table).items() if run in listed}
    assert scores
    for run, by_rate in scores.items():
        best = max(by_rate, key=lambda rate: by_rate[rate])
        assert configured(run) == best, run
        if sorted(by_rate) == listed[run]:
            assert min(by_rate) < best < max(by_rate), run


def test_published_encoders_have_the_published_scores():
    """Encoders as they were published have the published scores."""
    cells = pd.concat(
        pd.read_csv(ROOT / f"resources/laboratory/{name}.csv") for name in ("lab_evaluation", "lab_mpnet")
    )
    both = cells.dropna(subset=["mean", "published"])
    assert (both["mean"] - both["published"]).abs().max() < 0.011
    assert [(both["run"] == run).sum() for run in ("frozen_avg.minilm", "frozen_avg.mpnet")] == [13, 6]


def page_rows():
    """Cells of the laboratory's table of all systems, by system."""
    return rows_of(PAGE.partition("| system |")[2].partition("<!-- end")[0])


def rows_of(table):
    """Cells of a table of Markdown, by the first of each row."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    return {system: cells for system, *cells in rows}


def readme_rows():
    """The rows of them that the README shows, a dash where a cell is empty."""
    block = README.partition("```text\nsystem")[2].partition("```")[0]
    rows = [re.split(r"\s{2,}", line.strip()) for line in block.splitlines()[1:]]
    return {system: ["" if cell == "-" else cell for cell in cells] for system, *cells in rows}


def test_a_cost_is_the_sum_of_the_trainings_behind_a_system():
    """A cost is the sum of the measured trainings behind a system."""
    costs = {row["name"]: float(row["median"]) for row in rows_in("benchmarks/results.csv") if row["median"]}
    systems = yaml.safe_load((ROOT / "resources/laboratory/systems.yaml").read_text("utf-8"))
    summed = {}
    for name, one in systems.items():
        method, encoder, *_ = one["run"].split(".")
        if one["cost"] and (own := costs.get(f"training_cost_{method}")):
            twins = 2 * costs["training_cost_simcse_round_trips"] if encoder == "lab_twins" else 0
            summed[name] = f"{own + twins:.1f}"
    assert {"TNCSE", "JTCSE", "3R", "SSCL"} <= summed.keys()
    assert {name: systems[name]["cost"] for name in summed} == summed


def test_an_interval_follows_from_the_differences_of_the_seeds(tmp_path):
    """Five differences of mean 1 and standard deviation .5: 1 -+ 2.776 * .5 / sqrt(5), of a test with 80% power."""
    (tmp_path / "systems.yaml").write_text(
        "new: {table: t, run: a, cost: 1}\nold: {table: t, run: b, cost: 1}\n"
    )
    detectable = detectable_difference(0.5, 5, alpha=0.05, power=0.8)
    lines = [
        "run,heading,mean,sd,seeds,baseline,difference,detectable",
        f"a,mean,71.00,0.30,5,b,1.00,{detectable}",
        "b,mean,70.00,0.20,5,,,",
        "b,STS-B,60.00,0.20,5,,,",
    ]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    assert rows_of(systems_table(tmp_path)) == {
        "new": ["71.00 ± 0.30", "+1.00 (0.4 to 1.6)", "old", "1"],
        "old": ["70.00 ± 0.20", "", "", "1"],
    }


def test_the_readme_shows_some_of_these_systems():
    shown = readme_rows()
    assert len(shown) > 5
    assert shown == {system: page_rows()[system] for system in shown}


def test_the_readme_counts_verdicts_as_the_table_of_claims_does():
    counted, compared = (ROOT / "resources/laboratory/claims.md").read_text("utf-8").split("\n\n")
    supported, contradicted, undecided, not_run = map(int, re.findall(r"\d+", counted.splitlines()[-1]))
    assert supported + contradicted + undecided == len(compared.splitlines()) - 2
    sentence = re.search(r"\d+\s+claims,\s+\[the laboratory\].*?\.\s", README, re.DOTALL)
    counts = [supported + contradicted + undecided + not_run, supported, contradicted, undecided, not_run]
    assert [int(number) for number in re.findall(r"\d+", sentence[0])] == counts


def test_gains_are_those_of_the_table_of_claims():
    lines = doc_blocks.CLAIMS.read_text("utf-8").split("\n\n")[1].splitlines()[2:]
    points = pd.read_csv(doc_blocks.GAINS).to_dict("records")
    assert len(points) == len(lines) > 50
    for point, line in zip(points, lines, strict=True):
        assert f"| {point['says']} |" in line
        assert line.endswith(f"| {point['verdict']} |")
        ends = f"{brief(point['difference'])} ({brief(point['low'])} to {brief(point['high'])})"
        assert math.isnan(point["low"]) or f": {ends}, " in line


def test_the_picture_of_gains_has_the_points_that_are_kept():
    assert doc_blocks.points_drawn() == doc_blocks.points_kept(), "python -m tests.support.doc_blocks --write"


def test_the_page_begins_with_the_picture_and_is_short():
    assert PAGE.index(doc_blocks.PICTURE.name) < PAGE.index("\n## ")
    assert len(PAGE.split()) <= 2500


RANDOM_EMBEDDINGS = {"STS": (6, 7, 8, 9, 11), "clustering": (14, 15, 16, 17)}


def idf_distance(kind, ours, theirs):
    """Mean distance of our rows of a weighting to the paper's of another, over tasks and post-processings."""
    names = [f"extraction_table{number}" for number in RANDOM_EMBEDDINGS[kind]]
    cells = pd.concat(pd.read_csv(ROOT / f"resources/laboratory/{name}.csv") for name in names)
    cells = cells[cells["heading"] == "RE"].dropna(subset=["mean", "published"])
    rows = cells["run"].str.removeprefix("'").str.split(" + ", regex=False)
    cells = cells.assign(weighting=rows.str[0], then=rows.str[1].fillna(""))
    of = cells.set_index(["weighting", "task", "then"]).sort_index()
    return (of.loc[ours]["mean"] - of.loc[theirs]["published"]).abs().dropna().mean()


def test_idf_rows_of_random_embeddings_agree_when_exchanged():
    """O-86: idf over the task gives the rows that the paper calls idf^W, and the other way round."""
    for ours, theirs in (("idf^T", "idf^W"), ("idf^W", "idf^T")):
        assert idf_distance("STS", ours, theirs) < 0.6
        assert idf_distance("STS", ours, ours) > 1.5
    assert max(idf_distance("STS", name, name) for name in ("avg.", "-biases")) < 0.7


def test_clustering_says_less():
    """Rows that ought to agree differ by 2.3 and 2.6 there; exchanging the idf rows gains about one point."""
    pairs = [("avg.", "avg."), ("-biases", "-biases"), ("idf^T", "idf^W"), ("idf^W", "idf^T")]
    pairs += [("idf^W", "idf^W"), ("idf^T", "idf^T")]
    found = [idf_distance("clustering", *pair) for pair in pairs]
    assert found == pytest.approx([2.3, 2.6, 6.3, 3.1, 7.3, 4.3], abs=0.05)
