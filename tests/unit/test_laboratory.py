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


def shown_tables():
    """Tables of runs on the page, with the CSV that was named last before each, and the one of the README."""
    readme = (ROOT / "README.md").read_text("utf-8").partition("## Results")[2]
    page = (ROOT / "docs/laboratory.md").read_text("utf-8") + "`lab_systems.csv`" + readme
    for block in re.finditer(r"^```text\n(run .*?)^```", page, re.MULTILINE | re.DOTALL):
        file = re.findall(r"`(\w+\.csv)`", page[: block.start()])[-1]
        heading, *lines = block[1].splitlines()
        columns = re.split(r"\s{2,}", heading)[2:]
        cells = [re.split(r"\s{2,}| (?=-?\d+\.\d+ ±)", line) for line in lines]
        rows = {run: values for run, _seeds, *values in cells}
        yield pytest.param(file, columns, rows, id=file)


def test_the_pages_show_these_tables():
    files = ("lab_sts", "lab_three_r", "lab_readouts", "lab_twins", "lab_second", "lab_systems")
    shown = {f"{file}.csv" for file in files}
    assert {table.id for table in shown_tables()} == shown


@pytest.mark.parametrize(("file", "columns", "rows"), [*shown_tables()])
def test_the_pages_have_the_numbers_of_the_table_and_a_star_where_they_differ(file, columns, rows):
    with (ROOT / "resources/laboratory" / file).open(newline="") as lines:
        kept = {(row["run"], row["heading"]): row for row in csv.DictReader(lines)}
    assert len(rows) > 2
    for run, cells in rows.items():
        for heading, cell in zip(columns, cells, strict=True):
            row = kept[run, heading]
            mean, _, deviation = cell.rstrip("*").partition(" ± ")
            assert float(mean) == float(row["mean"]), (run, heading)
            assert deviation == "" or float(deviation) == float(row["sd"]), (run, heading)
            assert bool(deviation) == bool(row["sd"]), (run, heading)
            assert cell.endswith("*") == bool(row["p_value"] and float(row["p_value"]) < 0.05), (run, heading)


@pytest.mark.parametrize("page", ["docs/laboratory.md", "README.md"])
def test_the_pages_count_verdicts_as_the_table_of_claims_does(page):
    page, claims = ((ROOT / name).read_text("utf-8") for name in (page, "resources/laboratory/claims.md"))
    counted, compared = claims.split("\n\n")
    rows = [line for line in counted.splitlines() if not line.startswith("| all |")]
    assert "\n".join(rows) in page
    assert sum(map(int, re.findall(r"\d+", counted.splitlines()[-1])[:3])) == len(compared.splitlines()) - 2
