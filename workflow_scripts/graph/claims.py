"""What the rule that judges claims of papers looks up.

Nothing is made for a claim: it is compared where the study makes the table that it names. Tables hold the values behind
their means; the rule reads scored pairs too, where neither side has seeds.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from workflow_scripts.graph.claim_checks import FOLDER, Asked, asked_in
from workflow_scripts.graph.extraction_rows import tables_of
from workflow_scripts.graph.grid_columns import scored_columns
from workflow_scripts.graph.slices import as_json
from workflow_scripts.graph.study import Study
from workflow_scripts.graph.yaml_files import read_yaml


class Claims:
    """Lookups of the rule that judges claims."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._of_extraction = tables_of(study.config["extraction"])
        papers, scale = (study.config["claims"][key] for key in ("papers", "scale"))
        self.verdicts = ["<results>/claims.parquet"] if papers else []
        contents = {paper: read_yaml(study.root / FOLDER / f"{paper}.yaml") for paper in papers}
        self._held = [one for paper, content in contents.items() for one in _held(paper, content, scale)]
        shown = study.shown_extraction
        made = {*study.grids, *shown["tables"], *(set(shown["figures"]) & set(self._of_extraction))}
        self._asked = [
            asked
            for paper, content in contents.items()
            for asked in asked_in(paper, content, scale)
            if asked.table in made
        ]

    def settings(self) -> str:
        """The claims, what each is compared by at the study's scale, and how differences are tested."""
        return as_json({"held": {"claims": self._held}, "significance": self._study.config["significance"]})

    def tables(self) -> list[str]:
        """Tables that claims are compared in, and data of figures that they are."""
        drawn = self._study.shown_extraction["figures"]
        return [
            f"<results>/figures/extraction/{name}.parquet"
            if name in drawn
            else f"<results>/tables/{name}.parquet"
            for name in dict.fromkeys(one.table for one in self._asked)
        ]

    def pairs(self) -> list[str]:
        """Scored pairs of cells that are compared without seeds."""
        return _unique(file for asked in self._in_grids() for file in self._pairs(asked))

    def _in_grids(self) -> Iterator[Asked]:
        return (asked for asked in self._asked if asked.table in self._study.grids)

    def _pairs(self, asked: Asked) -> Iterator[str]:
        """Those of STS, where neither side has seeds to compare over."""
        runs = self._study.runs_of(asked.table)
        if all(runs[run].fixed for run, _ in asked.cells.values()):
            for kind, suite, run in self._places(asked):
                if kind == "sts":
                    pattern = f"<results>/scores/sts/{suite}/{{run}}/seed{{seed}}.pairs.parquet"
                    yield from self._of_run(pattern, asked, run)

    def _places(self, asked: Asked) -> Iterator[tuple[str, str, str]]:
        """Kind and name of every suite that a compared cell is computed from, with its run."""
        grid = self._study.grids[asked.table]
        kinds = {suite: kind for kind, suites in grid["suites"].items() for suite in suites}
        for run, heading in asked.cells.values():
            for suite in sorted({column["suite"] for column in scored_columns(grid["columns"], heading)}):
                yield kinds[suite], suite, run

    def _of_run(self, pattern: str, asked: Asked, run: str) -> list[str]:
        return self._study.files(pattern, {run: self._study.runs_of(asked.table)[run]})


def _held(paper: str, content: Mapping[str, Any], scale: str) -> Iterator[dict[str, Any]]:
    """Claims of a file without what they are compared by at other scales."""
    for name, claim in content["claims"].items():
        said = {key: value for key, value in claim.items() if key != "tested"}
        yield said | {"paper": paper, "name": name, "compared": claim["tested"][scale]}


def _unique(files: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(files))
