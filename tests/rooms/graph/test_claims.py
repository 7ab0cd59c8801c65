"""The claims of the five papers: sound, printed as they say, and read from what a study makes anyway."""

import csv
import re
import shutil
from collections import defaultdict

import pytest

from tests.support.snakemake_plans import DEMO, ROOT, grids_in, merged_config, settings_with, study_in
from workflow_scripts.data.printed import read_printed
from workflow_scripts.graph.claims import claim_errors
from workflow_scripts.graph.configuration import read_mapping
from workflow_scripts.graph.extraction import definable_rows, names, tables_of
from workflow_scripts.graph.study import Study
from workflow_scripts.reporting.extraction import positions
from workflow_scripts.settings.report import CLAIMS_FOLDER, Claim, ClaimComparison, claims_in

STUDIES = {
    "paper": [],
    "base": ["config/headline.yaml"],
    "laboratory": ["config/minilm.yaml"],
    "demo": [DEMO],
}
PAPERS = ["s2sent", "layerattpooler", "three_r", "jtcse", "extraction"]
CLAIMS = {
    scale: {
        (paper, row["claim"]): Claim.parse(row, place)
        for paper in PAPERS
        for place, row in claims_in(ROOT / CLAIMS_FOLDER, paper, scale).items()
    }
    for scale in STUDIES
}
EVERY = CLAIMS["paper"]
PRINTED = [key for key, claim in EVERY.items() if None not in (claim.printed_ours, claim.printed_theirs)]
AGAINST_THEIR_TABLE = {("s2sent", "two_over_one_dimension_roberta"), ("jtcse", "across_languages_tncse")}
"""Claims that the paper's own numbers do not bear out."""


@pytest.fixture(scope="module", params=STUDIES)
def study(request):
    opened = study_in(ROOT, [ROOT / overlay for overlay in STUDIES[request.param]])
    assert opened.settings.claims.model_dump() == {"papers": PAPERS, "scale": request.param}
    return opened


def published():
    """Grid, run and heading to what papers print there."""
    found = defaultdict(set)
    for file in (ROOT / "resources/published").glob("*.csv"):
        for row in read_printed(file.read_bytes(), file.name):
            found[row.grid, row.run, row.heading].add(row.value)
    return found


def test_printed_numbers_are_those_of_the_published_tables():
    """Cells that papers print nothing for are figures, and are told as null."""
    known, checked = published(), 0
    for key, claim in EVERY.items():
        compared, values = claim.compared, (claim.printed_ours, claim.printed_theirs)
        cells = compared.cells if isinstance(compared, ClaimComparison) else ()
        for cell, value in zip(cells, values, strict=False):
            printed = known.get((compared.table, *cell))
            assert printed is None or value in printed, (key, cell)
            checked += printed is not None
    assert checked > 150


@pytest.mark.parametrize("key", PRINTED, ids=".".join)
def test_printed_numbers_say_what_is_claimed_of_them(key):
    claim = EVERY[key]
    difference = claim.printed_ours - claim.printed_theirs
    agrees = {
        "higher": difference > 0,
        "lower": difference < 0,
        "same": abs(difference) <= (claim.margin or 0),
    }
    assert agrees[claim.expects] == (key not in AGAINST_THEIR_TABLE)


def test_every_comparison_is_in_tables_of_some_study(study):
    """``study_in`` has checked the cells of the tables that this study makes."""
    made = {*study.grids, *study.shown_extraction.tables, *study.shown_extraction.figures}
    compared = [claim.compared for claim in CLAIMS[study.settings.claims.scale].values()]
    tables = {one.table for one in compared if isinstance(one, ClaimComparison)}
    assert tables
    assert tables <= made


@pytest.mark.parametrize(
    "table", ["extraction_table1", "extraction_table4", "extraction_table8", "extraction_figure3"]
)
def test_rows_of_extraction_are_named_as_in_its_tables(table):
    """Rows of the extraction study are named as its tables name them."""
    settings = settings_with("config/config.yaml")
    block = tables_of(settings.extraction)[table]
    shown = positions(block, names(settings, block))
    rows, headings = definable_rows(settings.extraction, table)
    several = len({place.group for place in shown}) > 1
    assert shown
    for place in shown:
        row = f"{place.group}: {place.row}" if several else place.row
        assert row in rows
        assert place.column in headings


# Mistakes


FIRST = "config/claims/s2sent.csv: line 2 (simcse_bert): "
MISTAKES = {
    "a misspelt column": (
        "s2sent", 0, "expects", "expect",
        "config/claims/s2sent.csv: column: expect is not defined. Did you mean expects?",
    ),
    "a direction that is none": (
        "s2sent", 1, "expects", "up", f"{FIRST}expects: must be 'higher', 'lower' or 'same'; found 'up'",
    ),
    "a name in capitals": (
        "s2sent", 1, "claim", "SimCSE",
        "config/claims/s2sent.csv: line 2 (SimCSE): claim: must consist of small letters, digits and underscores; found 'SimCSE'.",
    ),
    "a name that another claim has": (
        "s2sent", 1, "claim", "promptcse_bert",
        "config/claims/s2sent.csv: line 2 (promptcse_bert): a second claim of that name. Rename it.",
    ),
    "a margin of a direction": (
        "s2sent", 1, "margin", "0.5", f"{FIRST}margin: a claim that expects higher reads no margin. Leave the cell empty.",
    ),
    "a margin that is not a number": ("s2sent", 1, "margin", "half", f"{FIRST}margin: must be a number; found 'half'"),
    "no margin of sameness": (
        "s2sent", 9, "margin", "",
        "config/claims/s2sent.csv: line 10 (averaging_is_no_gain): margin: a claim that expects same needs margin.",
    ),
    "a sentence that is none": (
        "s2sent", 1, "demo_note", "fifty documents; read at CLS",
        f"{FIRST}demo_note: read at CLS is not defined. Did you mean read at [CLS]?",
    ),
    "neither a table nor a reason": ("s2sent", 2, "demo_note", "", (
        "config/claims/s2sent.csv: line 3 (promptcse_bert): demo_table and demo_note are empty. "
        "Fill in the table that tests the claim, or the note with the reason why none does."
    )),
    "nothing that it says": ("s2sent", 1, "says", "", f"{FIRST}says: must be a text that is not empty; found ''"),
    "a table that is none": ("s2sent", 1, "demo_table", "dmo", f"{FIRST}demo_table: dmo is not defined. Did you mean demo?"),
    "a run that is none": (
        "s2sent", 1, "demo_ours", "simcse_s2sen.minilm_mlm.wiki_extract",
        f"{FIRST}demo_ours: simcse_s2sen.minilm_mlm.wiki_extract is not defined. "
        "Did you mean simcse_s2sent.minilm_mlm.wiki_extract?",
    ),
    "a column that is none": (
        "s2sent", 1, "demo_heading", "Spearmann",
        f"{FIRST}demo_heading: Spearmann is not defined. Did you mean Spearman?",
    ),
    "a row of the extraction study that nothing can make": (
        "extraction", 6, "demo_ours", "idf^V",
        "config/claims/extraction.csv: line 7 (idf_random): demo_ours: idf^V is not defined. Did you mean idf^W?",
    ),
    "a model that is none": (
        "extraction", 6, "demo_heading", "BERTT",
        "config/claims/extraction.csv: line 7 (idf_random): demo_heading: BERTT is not defined. Did you mean BERT?",
    ),
    "a cell too many": (
        "s2sent", 1, "demo_note", "fifty documents,",
        "config/claims/s2sent.csv: line 2: more cells than the header. Put text with commas into quotation marks.",
    ),
}  # fmt: skip


def demo(tmp_path):
    claims = {"papers": ["s2sent", "extraction"], "scale": "demo"}
    return Study(settings_with(claims=claims), grids_in(merged_config(DEMO)), tmp_path)


@pytest.mark.parametrize(("paper", "line", "column", "value", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_line_with_place_and_remedy(paper, line, column, value, message, tmp_path):
    """In the demo's claims of S2Sent or of the extraction study; line 0 has the names of the columns."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    file = tmp_path / CLAIMS_FOLDER / f"{paper}.csv"
    rows = list(csv.reader(file.read_text("utf-8").splitlines()))
    rows[line][rows[0].index(column)] = value
    with file.open("w", newline="") as edited:
        csv.writer(edited).writerows(rows)
    if value.endswith(","):
        file.write_text(file.read_text().replace(f'"{value}"', f"{value}x"))
    found = [*map(str, claim_errors(demo(tmp_path)))]
    assert found[0].startswith(message)
    assert len(found) == 1 or column in ("claim", "demo_heading")  # of two claims, or of both cells


def test_no_fixed_text_of_a_study_counts_seeds_or_steps():
    """Files laid over the study may change both; its page and its verdicts count them from tables."""
    pages = [read_mapping(file).get("report", {}).get("page", {}) for file in ROOT.glob("config/*.yaml")]
    said = [text for page in pages for text in page.values() if text]
    compared = [claim.compared for claim in CLAIMS["demo"].values()]
    said += [one.note if isinstance(one, ClaimComparison) else one for one in compared]
    assert len(said) > 100
    assert [
        text
        for text in said
        if re.search(r"\b(\d+|two|three|few|hundreds|thousands)\b.* (seeds|steps)", text)
    ] == []
