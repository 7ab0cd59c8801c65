"""The claims of the five papers: sound, printed as they say, and read from what a study makes anyway."""

from collections import defaultdict
from itertools import product

import pytest

from tests.planning import DEMO, ROOT, merged_config, set_at, study_in
from workflow_scripts.data.printed import read_printed
from workflow_scripts.extraction.blocks import names
from workflow_scripts.graph.checks import read_grids
from workflow_scripts.graph.configuration import read_yaml
from workflow_scripts.graph.resources import CLAIMS, claim_findings
from workflow_scripts.reporting.extraction import places
from workflow_scripts.settings.claims import ClaimFile, Comparison
from workflow_scripts.settings.extraction import ExtractionTable, Names, definable_rows, tables_of

STUDIES = {"paper": [], "laboratory": ["config/minilm.yaml"], "demo": [DEMO]}
PAPERS = ["s2sent", "layerattpooler", "three_r", "jtcse", "extraction"]
FILES = {paper: ClaimFile.parse(read_yaml(ROOT / CLAIMS / f"{paper}.yaml"), paper).claims for paper in PAPERS}
EVERY = [(paper, name) for paper, claims in FILES.items() for name in claims]
PRINTED = [(paper, name) for paper, name in EVERY if None not in dict(FILES[paper][name].printed).values()]
AGAINST_THEIR_TABLE = {("s2sent", "two_over_one_dimension_roberta"), ("jtcse", "across_languages_tncse")}
"""Claims that the paper's own numbers do not bear out."""


@pytest.fixture(scope="module", params=STUDIES)
def study(request):
    opened = study_in(ROOT, [ROOT / overlay for overlay in STUDIES[request.param]])
    assert opened.config["claims"] == {"papers": PAPERS, "scale": request.param}
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
    for (paper, name), side in product(EVERY, ("ours", "theirs")):
        compared, value = FILES[paper][name].tested.paper, getattr(FILES[paper][name].printed, side)
        if isinstance(compared, Comparison):
            cell = getattr(compared, side)
            printed = known.get((compared.table, cell.run, cell.heading))
            assert printed is None or value in printed, (paper, name, side)
            checked += printed is not None
    assert checked > 150


@pytest.mark.parametrize(("paper", "name"), PRINTED)
def test_printed_numbers_say_what_is_claimed_of_them(paper, name):
    claim = FILES[paper][name]
    difference = claim.printed.ours - claim.printed.theirs
    agrees = {
        "higher": difference > 0,
        "lower": difference < 0,
        "same": abs(difference) <= (claim.margin or 0),
    }
    assert agrees[claim.expects] == ((paper, name) not in AGAINST_THEIR_TABLE)


def test_every_comparison_is_in_tables_that_some_study_here_makes(study):
    """``study_in`` has checked the cells of the tables that this study makes."""
    made = {*study.grids, *study.shown_extraction["tables"], *study.shown_extraction["figures"]}
    tested = [
        getattr(claim.tested, study.config["claims"]["scale"])
        for claims in FILES.values()
        for claim in claims.values()
    ]
    tables = {compared.table for compared in tested if isinstance(compared, Comparison)}
    assert tables and tables <= made


@pytest.mark.parametrize(
    "table", ["extraction_table1", "extraction_table4", "extraction_table8", "extraction_figure3"]
)
def test_rows_of_the_extraction_study_are_named_as_its_tables_name_them(table):
    config = merged_config(ROOT, "config/config.yaml")
    extraction = config["extraction"]
    block = tables_of(extraction)[table]
    shown = places(ExtractionTable.parse(block, table), Names.parse(names(config, block), table))
    rows, headings = definable_rows(extraction, table)
    several = len({place.group for place in shown}) > 1
    assert shown
    for place in shown:
        row = f"{place.group}: {place.row}" if several else place.row
        assert row in rows and place.column in headings


# Mistakes


FIRST = "s2sent/claims/simcse_bert"
MISTAKES = {
    "a misspelt key": (
        f"{FIRST}/expect", "higher",
        "claims/s2sent.yaml: claims.simcse_bert.expect: unknown key. Did you mean expects?",
    ),
    "a direction that is none": (
        f"{FIRST}/expects", "up",
        "claims/s2sent.yaml: claims.simcse_bert.expects: 'up' is none of higher, lower, same.",
    ),
    "a name in capitals": (
        "s2sent/claims/SimCSE", {},
        "claims/s2sent.yaml: claims.SimCSE: not a name. Use small letters, digits and underscores.",
    ),
    "a margin of a direction": (
        f"{FIRST}/margin", 0.5,
        "claims/s2sent.yaml: claims.simcse_bert.margin: a claim that expects higher reads no margin. Correct it.",
    ),
    "no margin of sameness": (
        "s2sent/claims/averaging_is_no_gain/margin", None,
        "claims/s2sent.yaml: claims.averaging_is_no_gain.margin: a claim that expects same needs margin. Correct it.",
    ),
    "a table that is none": (
        f"{FIRST}/tested/demo/table", "dmo",
        "claims/s2sent.yaml: claims.simcse_bert.tested.demo.table: dmo is not defined. Did you mean demo?",
    ),
    "a run that is none": (
        f"{FIRST}/tested/demo/ours/run", "simcse_s2sen.minilm_mlm.wiki_extract",
        "claims/s2sent.yaml: claims.simcse_bert.tested.demo.ours.run: simcse_s2sen.minilm_mlm.wiki_extract is not "
        "defined. Did you mean simcse_s2sent.minilm_mlm.wiki_extract?",
    ),
    "a column that is none": (
        f"{FIRST}/tested/demo/theirs/heading", "Spearmann",
        "claims/s2sent.yaml: claims.simcse_bert.tested.demo.theirs.heading: Spearmann is not defined. "
        "Did you mean Spearman?",
    ),
    "a row of the extraction study that nothing can make": (
        "extraction/claims/idf_random/tested/demo/ours/run", "idf^V",
        "claims/extraction.yaml: claims.idf_random.tested.demo.ours.run: idf^V is not defined. Did you mean idf^W?",
    ),
    "a model that is none": (
        "extraction/claims/idf_random/tested/demo/ours/heading", "BERTT",
        "claims/extraction.yaml: claims.idf_random.tested.demo.ours.heading: BERTT is not defined. Did you mean BERT?",
    ),
    "a column of times": (
        "demo/columns/0/measured", True,
        "claims/s2sent.yaml: claims.simcse_bert.tested.demo.ours.heading: Spearman is not defined.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("path", "value", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_line_that_says_where_what_and_the_remedy(path, value, message, monkeypatch):
    """In the demo's claims of S2Sent and of the extraction study, or in its grid."""
    config = merged_config(ROOT, DEMO) | {"claims": {"papers": ["s2sent", "extraction"], "scale": "demo"}}
    grids = read_grids(config, ROOT / "config")[0]
    contents = {paper: read_yaml(ROOT / CLAIMS / f"{paper}.yaml") for paper in config["claims"]["papers"]}
    set_at(contents | grids, path, value)
    monkeypatch.setattr("workflow_scripts.graph.resources.read_yaml", lambda file: contents[file.stem])
    found = list(claim_findings(config, grids, ROOT))
    assert found[0].startswith(message) and (len(found) == 1 or path.startswith("demo/"))
