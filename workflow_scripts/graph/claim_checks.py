"""Whether the files of claims are sound, and what they name in the tables of a study is there."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.extraction_rows import definable_rows, tables_of
from workflow_scripts.graph.findings import advice, unknown
from workflow_scripts.graph.grid_columns import numbered_columns
from workflow_scripts.graph.mistakes import mistakes
from workflow_scripts.graph.runs import runs_of
from workflow_scripts.graph.yaml_files import read_yaml
from workflow_scripts.settings.claims import ClaimFile

FOLDER = "config/claims"


class Asked(NamedTuple):
    """A claim that is compared in a table of the study."""

    place: str
    comparison: Mapping[str, Any]

    @property
    def table(self) -> str:
        """Name of the table."""
        return str(self.comparison["table"])

    @property
    def cells(self) -> dict[str, tuple[str, str]]:
        """Run and heading of both sides."""
        sides = {side: self.comparison[side] for side in ("ours", "theirs")}
        return {side: (cell["run"], cell["heading"]) for side, cell in sides.items()}


def claim_findings(config: Mapping[str, Any], grids: Mapping[str, Any], root: Path) -> Iterator[str]:
    """What is wrong with the files of claims that a study names, and with what they name in its tables.

    Args:
        config: The configuration, checked against its schema.
        grids: Its grids by name, likewise.
        root: Folder of the Snakefile.
    """
    folder = root / FOLDER
    known = sorted(file.stem for file in folder.glob("*.yaml"))
    for paper in config["claims"]["papers"]:
        if paper not in known:
            yield f"claims.papers: no file {paper}.yaml in {FOLDER}. {advice(paper, known)}"
            continue
        try:
            content = read_yaml(folder / f"{paper}.yaml")
        except ConfigError as error:
            yield str(error)
            continue
        place = f"claims/{paper}.yaml: "
        found = mistakes(ClaimFile, content, place)
        yield from found
        if not found:
            yield from _of_names(config, grids, root, paper, content)


def _of_names(
    config: Mapping[str, Any], grids: Mapping[str, Any], root: Path, paper: str, content: Mapping[str, Any]
) -> Iterator[str]:
    """Tables that are none, and cells that a table of this study does not have."""
    scale, extraction = config["claims"]["scale"], config["extraction"]
    of_extraction = tables_of(extraction)
    tables = {file.stem for file in (root / "config/experiments").glob("*.yaml")} | set(of_extraction)
    for asked in asked_in(paper, content, scale):
        if asked.table in grids:
            runs, headings = _comparable(grids[asked.table])
        elif asked.table in of_extraction:
            runs, headings = definable_rows(extraction, asked.table)
        else:
            yield from unknown(asked.table, tables, f"{asked.place}.table")
            continue
        for side, (run, heading) in asked.cells.items():
            yield from unknown(run, runs, f"{asked.place}.{side}.run")
            yield from unknown(heading, headings, f"{asked.place}.{side}.heading")


def _comparable(grid: Mapping[str, Any]) -> tuple[Iterable[str], Iterable[str]]:
    """Runs of a grid, and headings of its scores, means and ratios."""
    columns = [column for _, column in numbered_columns(grid) if not column.get("measured")]
    return runs_of(grid), [one["heading"] for one in columns if not one.keys() & {"path_of", "gain_of"}]


def asked_in(paper: str, content: Mapping[str, Any], scale: str) -> Iterator[Asked]:
    """Claims of a file with a comparison at one scale."""
    for name, claim in content["claims"].items():
        comparison = claim["tested"][scale]
        if isinstance(comparison, Mapping):
            yield Asked(f"claims/{paper}.yaml: claims.{name}.tested.{scale}", comparison)
