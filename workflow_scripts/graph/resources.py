"""Check the repository's files for a study: prompts, printed tables, claims.

If a rule's inputs are missing but its output exists, Snakemake treats the output as a source, and a wrong name goes
unnoticed on a finished study.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from workflow_scripts.errors import ConfigError, advice, unknown
from workflow_scripts.graph.blocks import definable_rows, tables_of
from workflow_scripts.graph.mistakes import read
from workflow_scripts.graph.schema import Configuration, GridBlock
from workflow_scripts.settings.claims import FOLDER as CLAIMS
from workflow_scripts.settings.claims import Claim, Comparison, claims_in, papers_in
from workflow_scripts.settings.corpora import LlmPool
from workflow_scripts.settings.grids import Column, MeanColumn, RatioColumn, is_measured, runs_of

_CLAIMED = (Column, MeanColumn, RatioColumn)
"""Columns that claims can be about: paths and gains are of single runs."""


def resource_findings(settings: Configuration, grids: Mapping[str, GridBlock], root: Path) -> Iterator[str]:
    """Names in the configuration and its grids of files below ``resources`` that are not there."""
    folder = root / "resources"
    yield from missing(folder / "tokens", "json", settings.extraction.bias_list, "extraction.bias_list")
    for name, pool in settings.exemplars.items():
        if isinstance(pool, LlmPool):
            yield from missing(folder / "prompts", "txt", pool.prompt, f"exemplars.{name}.prompt")
    for name, grid in grids.items():
        for table in grid.published:
            yield from missing(folder / "published", "csv", table, f"experiments/{name}.yaml: published")


def missing(folder: Path, ending: str, name: str, place: str) -> Iterator[str]:
    """A finding where a folder of ``resources`` lacks a file that is named at a place of the configuration."""
    if not (folder / f"{name}.{ending}").exists():
        known = sorted(file.stem for file in folder.glob(f"*.{ending}"))
        yield f"{place}: no file resources/{folder.name}/{name}.{ending}. {advice(name, known)}"


def data_root_findings(settings: Configuration, data_root: Path | None) -> Iterator[str]:
    """Folders on this machine that are named and not there, or lie where nothing of a study may."""
    if data_root is not None and not data_root.is_dir():
        place = "data_root" if settings.data_root else "environment variable SEMBLANCE_DATA"
        yield f"{place}: {data_root} is not a folder. Name the folder of local data, or none."
    answers = Path(settings.answers)
    if answers.is_absolute() or ".." in answers.parts:
        yield (
            f"answers: {settings.answers} is outside the study's folder. Name a path below it; "
            "the environment variable SEMBLANCE_ANSWERS may name another place."
        )


def claim_findings(settings: Configuration, grids: Mapping[str, GridBlock], root: Path) -> Iterator[str]:
    """Mistakes in the tables of claims that a study names, and in their references to its tables.

    Args:
        settings: The configuration, which is sound.
        grids: Its grids by name, likewise.
        root: Folder of the Snakefile.
    """
    known, scale = papers_in(root / CLAIMS), settings.claims.scale
    for paper in settings.claims.papers:
        if paper not in known:
            yield f"claims.papers: no file {paper}.csv in {CLAIMS}. {advice(paper, known)}"
            continue
        try:
            rows = claims_in(root / CLAIMS, paper, scale)
        except ConfigError as error:
            yield str(error)
            continue
        for place, row in rows.items():
            if not row["compared"]:
                yield f"{place}: neither {scale}_table nor {scale}_note. Name a table, or the reason why none tests it."
                continue
            claim, found = read(Claim, row, f"{place}: ")
            yield from found
            if claim and isinstance(claim.compared, Comparison):
                yield from _cell_findings(settings, grids, root, claim.compared, f"{place}: {scale}_")


def _cell_findings(
    settings: Configuration, grids: Mapping[str, GridBlock], root: Path, compared: Comparison, place: str
) -> Iterator[str]:
    """A table that does not exist, and cells that a table of this study does not have."""
    table, for_extraction = compared.table, tables_of(settings.extraction)
    runs: Iterable[str]
    if table in grids:
        held = (column for _, column in grids[table].numbered() if not is_measured(column))
        runs, headings = runs_of(grids[table]), {one.heading for one in held if isinstance(one, _CLAIMED)}
    elif table in for_extraction:
        runs, headings = definable_rows(settings.extraction, table)
    else:
        tables = {file.stem for file in (root / "config/experiments").glob("*.yaml")} | set(for_extraction)
        yield from unknown(table, tables, f"{place}table")
        return
    for column, known in (
        ("ours", runs),
        ("heading", headings),
        ("theirs", runs),
        ("their_heading", headings),
    ):
        yield from unknown(getattr(compared, column), known, f"{place}{column}")
