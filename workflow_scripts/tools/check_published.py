"""Recompute the means in papers' tables from the cells: python -m workflow_scripts.tools.check_published."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import yaml
from rich.table import Table

from workflow_scripts.audit.printing import console
from workflow_scripts.errors import DataError, one_line_errors
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.reporting.published_means import Check, Means, check, read_printed

PUBLISHED = ROOT / "resources/published"


def checks_of(folder: Path) -> list[Check]:
    """Every mean in the tables of a folder, with its recomputation."""
    tables = {
        file.stem: read_printed(file.read_text("utf-8"), str(file)) for file in sorted(folder.glob("*.csv"))
    }
    means = Means.parse(yaml.safe_load((folder / "means.yaml").read_text("utf-8")), "means.yaml")
    return check(tables, means)


def counts(checks: Sequence[Check]) -> Table:
    """The number of means checked, and of means that are off, by table."""
    table = Table(title="Printed means")
    for heading in ("table", "checked", "off"):
        table.add_column(heading, justify="left" if heading == "table" else "right")
    for name in dict.fromkeys(one.table for one in checks):
        of_table = [one for one in checks if one.table == name]
        table.add_row(name, str(len(of_table)), str(sum(one.off for one in of_table)))
    table.add_section()
    table.add_row("all", str(len(checks)), str(sum(one.off for one in checks)))
    return table


def listed(checks: Sequence[Check]) -> Table:
    """Means that are off or have a note, with their recomputation."""
    table = Table(title="Means that rounding does not explain")
    for heading in ("table", "row", "column", "printed", "recomputed", "note"):
        right = heading in ("printed", "recomputed")
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
    for one in checks:
        if one.off or one.printed.note:
            row = ", ".join(part for part in (one.cell.group, one.cell.row) if part)
            recomputed = f"{float(one.recomputed):.4f}"
            table.add_row(one.table, row, one.cell.column, one.printed.text, recomputed, one.printed.note)
    return table


def main() -> None:
    """Print what was checked and what is off; fail if notes and findings disagree."""
    argparse.ArgumentParser(
        prog="python -m workflow_scripts.tools.check_published", description=__doc__
    ).parse_args()
    checks = checks_of(PUBLISHED)
    console().print(counts(checks), listed(checks))
    for one in checks:
        if one.surprising:
            found = "is off and has no note" if one.off else "has a note and is not off"
            raise DataError(f"{one.table}: {', '.join(one.cell)}: {found}. Compare it with the paper.")


if __name__ == "__main__":
    with one_line_errors():
        main()
