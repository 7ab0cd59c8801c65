"""The claims of papers that a study tests: checks of their tables, and the inputs of their judgement."""

from collections.abc import Iterable, Iterator

from workflow_scripts.errors import ConfigError, ErrorDetails, advice, unknown
from workflow_scripts.graph.extraction import definable_rows, tables_of
from workflow_scripts.graph.slices import as_json
from workflow_scripts.graph.study import Study
from workflow_scripts.settings.grids import scored_columns
from workflow_scripts.settings.report import CLAIMS_FOLDER, Claim, ClaimComparison, claims_in, papers_in
from workflow_scripts.settings.wording import read


def claim_errors(study: Study) -> Iterator[ErrorDetails]:
    """Yield errors in a study's tables of claims, and in their references to its own tables."""
    folder, scale = study.root / CLAIMS_FOLDER, study.settings.claims.scale
    known = papers_in(folder)
    for paper in study.settings.claims.papers:
        if paper not in known:
            yield ErrorDetails(
                "claims.papers", f"no file {paper}.csv in {CLAIMS_FOLDER}", advice(paper, known)
            )
            continue
        try:
            rows = claims_in(folder, paper, scale)
        except ConfigError as error:
            yield ErrorDetails("", str(error))
            continue
        for line, row in rows.items():
            if not row["compared"]:
                problem = f"{scale}_table and {scale}_note are empty"
                yield ErrorDetails(
                    "",
                    problem,
                    "Fill in the table that tests the claim, or the note with the reason why none does.",
                    file=line,
                )
                continue
            claim, errors = read(Claim, row)
            yield from (error.under("", file=line) for error in errors)
            if claim and isinstance(claim.compared, ClaimComparison):
                cells = _cell_errors(study, claim.compared)
                yield from (error._replace(path=f"{scale}_{error.path}", file=line) for error in cells)


def _cell_errors(study: Study, compared: ClaimComparison) -> Iterator[ErrorDetails]:
    """Yield an error for a table that does not exist, and for cells that this study's table does not have."""
    table, extraction = compared.table, study.settings.extraction
    for_extraction = tables_of(extraction)
    runs: Iterable[str]
    headings: Iterable[str]
    if table in study.blocks:
        defined = study.blocks[table].own_names(study.settings.suites)
        runs, headings = defined["grid.runs"], defined["grid.headings"]
    elif table in for_extraction:
        runs, headings = definable_rows(extraction, table)
    else:
        tables = {file.stem for file in (study.root / "config/experiments").glob("*.yaml")}
        yield from unknown(table, tables | {*for_extraction}, "table")
        return
    yield from unknown(compared.ours, runs, "ours")
    yield from unknown(compared.heading, headings, "heading")
    yield from unknown(compared.theirs, runs, "theirs")
    yield from unknown(compared.their_heading, headings, "their_heading")


class PlannedClaims:
    """The claims of papers that a study tests.

    Claims add no jobs: a claim is compared if the study makes its table. Tables contain the values of their means;
    if neither side has seeds, the rule reads scored pairs, too.
    """

    def __init__(self, study: Study) -> None:
        asked = study.settings.claims
        self._study, self._scale = study, asked.scale
        self.verdicts = ["<results>/claims.parquet"] if asked.papers else []
        self._held = [
            Claim.parse(row, line)
            for paper in asked.papers
            for line, row in claims_in(study.root / CLAIMS_FOLDER, paper, asked.scale).items()
        ]
        shown = study.shown_extraction
        self._drawn = {*shown.figures} & {*tables_of(study.settings.extraction)}
        tables = {*study.grids, *shown.tables, *self._drawn}
        compared = (claim.compared for claim in self._held)
        self._asked = [
            comparison
            for comparison in compared
            if isinstance(comparison, ClaimComparison) and comparison.table in tables
        ]

    def settings(self) -> str:
        """Return the claims, with their comparisons at the study's scale, and the settings of the tests, as JSON."""
        held = {"claims": self._held, "scale": self._scale}
        return as_json({"held": held, "significance": self._study.settings.significance})

    def tables(self) -> dict[str, list[str]]:
        """Return the tables of which cells are compared, and figure records that contain tables, by role."""
        tables = dict.fromkeys(comparison.table for comparison in self._asked)
        drawn = ["<results>/figures/extraction/record.json"] if self._drawn & tables.keys() else []
        return {
            "tables": [f"<results>/tables/{name}.parquet" for name in tables if name not in self._drawn],
            "figures": drawn,
        }

    def reads(self) -> dict[str, list[str]]:
        """Return inputs by role: tables, figure records that contain tables, scored pairs."""
        in_grids = (comparison for comparison in self._asked if comparison.table in self._study.grids)
        pairs = dict.fromkeys(file for comparison in in_grids for file in self._pairs(comparison))
        return self.tables() | {"pairs": [*pairs]}

    def _pairs(self, compared: ClaimComparison) -> Iterator[str]:
        """Yield the files of scored pairs of STS for cells that are compared without seeds."""
        grid = self._study.grids[compared.table]
        if not grid.gaps.keys() & {run for run, _ in compared.cells} and all(
            grid.runs[run].asked.fixed for run, _ in compared.cells
        ):
            for run, heading in compared.cells:
                columns = scored_columns([column.model_dump() for column in grid.columns], heading)
                suites = {column["suite"] for column in columns} & {*grid.block.suites.get("sts", [])}
                for suite in sorted(suites):
                    path = f"<results>/scores/sts/{suite}/{{run}}/seed{{seed}}.pairs.parquet"
                    yield from grid.runs[run].files(path)
