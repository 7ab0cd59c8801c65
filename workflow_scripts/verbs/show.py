"""Print the tables of a study, results/<study>, or those in the named files; or draw learning curves of trainings.

Several files, also of several studies, are printed as one table. Its rows are joined by run and its columns by heading.
If a run has different values in two tables, it has a row for each, named after its table or study; with --by run, it
has one row, and the column occurs for each table. The tables of a study are joined only if --by is given.

--sort prints the best runs first (the highest values, or the lowest of a column such as alignment). --csv has the
tables' numbers, rounded and without times; --markdown and --latex have the cells as they are printed, with the paper's
values and the best value of each column in bold; LaTeX needs booktabs. Texts in --csv are written as they are, for
programs: a quote in front of a title that begins with =, +, - or @ would change the title. Spreadsheets take such a
cell for a formula, so import the column as text.

If paths are runs, their seeds, or files of these, learning curves are drawn into the file --to (.svg, .pdf or .png).

  python -m workflow_scripts show results/demo/tables/demo.parquet --sort Spearman --top 3 --markdown
"""

import argparse
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from shutil import get_terminal_size
from typing import NamedTuple

import pyarrow.parquet as pq
from rich.console import RenderableType

from workflow_scripts.columns import TABLE
from workflow_scripts.errors import ConfigError, DataError, place_of
from workflow_scripts.reporting import selection
from workflow_scripts.reporting.sheets import (
    Sheet,
    footnotes,
    in_rows,
    in_terminal,
    latex,
    sheet_of,
    to_csv,
)
from workflow_scripts.verbs.curves import draw, histories_of, study_of, training_folder
from workflow_scripts.verbs.printing import PIPE_WIDTH, Answer, PrintedTable, argument, markdown
from workflow_scripts.verbs.records import Records, artefact_at, missing_file, relative_name, study_folder

_REMEDY = "Choose a study, such as results/demo, or files of its tables."
_FIGURE = Path("learning_curves.svg")


class Shown(NamedTuple):
    """A table to print, with its files."""

    paths: Sequence[Path]
    """Files of the table; several if it was joined."""
    sheet: Sheet


class Choice(NamedTuple):
    """Selection of columns and runs to print."""

    columns: Sequence[str] = ()
    """Headings of the columns; empty for all."""
    sort: str | None = None
    """Heading of the column by which runs are sorted."""
    reverse: bool = False
    top: int | None = None
    """Number of runs; None for all."""
    notes: bool = True

    def of(self, tables: Sequence[Shown]) -> list[Shown]:
        """Return the selected parts of tables, without tables that have none of the columns.

        Raises:
            DataError: if no table has a selected column.
        """
        for option, names in self._named().items():
            selection.check_columns([table.sheet for table in tables], names, option)
            tables = [
                table for table in tables if not {*names}.isdisjoint(selection.column_names(table.sheet))
            ]
        return [table._replace(sheet=self._of_one(table.sheet)) for table in tables]

    def _named(self) -> dict[str, Sequence[str]]:
        """Return the columns of each given option."""
        named: dict[str, Sequence[str]] = {
            "--columns": self.columns,
            "--sort": [self.sort] if self.sort else [],
        }
        return {option: names for option, names in named.items() if names}

    def _of_one(self, sheet: Sheet) -> Sheet:
        if self.sort:  # also by a column that is not printed
            sheet = selection.in_order(sheet, self.sort, reverse=self.reverse)
        if self.columns:
            sheet = selection.with_columns(sheet, self.columns)
        if self.top:
            sheet = selection.first(sheet, self.top)
        return sheet if self.notes else selection.without_notes(sheet)

    def words(self) -> list[str]:
        """Return the command-line options for this selection."""
        columns = [word for name in self.columns for word in ("--columns", name)]
        sort = ["--sort", self.sort] if self.sort else []
        top = ["--top", str(self.top)] if self.top else []
        flags = {"--reverse": self.reverse, "--no-notes": not self.notes}
        return [*columns, *sort, *top, *(flag for flag, given in flags.items() if given)]


def measured_table(path: Path) -> Path | None:
    """Return the measured columns' file of a table results/<study>/tables/<name>.parquet; None without any."""
    study = path.absolute().parent.parent
    times = study.parent.parent / "benchmarks" / study.name / "tabulate_times" / path.name
    return times if times.exists() else None


def tables_in(folder: Path) -> list[Path]:
    """Return the files of a study's tables.

    Raises:
        DataError: if the folder has none, or one is missing from which other artefacts were made.
    """
    if not (folder / "tables").is_dir():
        raise DataError(f"{folder}: a folder without tables. {_REMEDY}")
    root, name = place_of(folder / "tables")
    for listed in sorted(Records([folder], hashing=False).listed):
        if Path(listed).parent == Path(name) and not (root / listed).exists():
            raise missing_file(Path(relative_name(root / listed)))
    return sorted(folder.glob("tables/*.parquet"))


def check_table(path: Path) -> None:
    """Raise DataError unless a file is a table.

    Raises:
        DataError: if it is not a table, missing or damaged.
    """
    name, record = artefact_at(path)
    if name != Path(relative_name(path)) and path.suffix == ".parquet":
        raise DataError(f"{path}: data of a figure, not a table. Read it with pandas.read_parquet. {_REMEDY}")
    if name.suffix != ".parquet" or pq.read_schema(name).remove_metadata() != TABLE:
        raise DataError(f"{path}: made by {record.rule}, not a table. {_REMEDY}")


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"must be a whole number from 1; found {text!r}")
    return int(text)


ARGUMENTS = (
    argument(
        "paths", nargs="+", type=study_folder, metavar="PATH", help="results/<study>, tables, or trainings"
    ),
    argument("--by", choices=["run", "heading"], help="join tables; a run, or a heading, then occurs once"),
    argument("--columns", action="append", default=[], metavar="A,B", help="print only these, in this order"),
    argument("--sort", metavar="COLUMN", help="sort runs by a column, the best first"),
    argument("--reverse", action="store_true", help="with --sort: the best runs last"),
    argument("--top", type=_count, metavar="N", help="print only the first N runs"),
    argument("--no-notes", dest="notes", action="store_false", help="leave out marks and the lines below"),
    argument("--to", type=Path, metavar="FILE", help=f"figure of trainings; default: {_FIGURE}"),
    *(
        argument(
            f"--{form}",
            exclusive=True,
            dest="form",
            action="store_const",
            const=form,
            help=f"print as {form} instead",
        )
        for form in ("csv", "markdown", "latex")
    ),
)


def answer(
    paths: list[Path],
    by: selection.By | None,
    columns: list[str],
    sort: str | None,
    reverse: bool,
    top: int | None,
    notes: bool,
    to: Path | None,
    form: str | None,
) -> Answer:
    """Print tables, separately or joined, or draw the learning curves of trainings.

    Raises:
        ConfigError: if options exclude each other.
        DataError: if a path is neither a table nor a training, or a table lacks a column.
    """
    if reverse and not sort:
        raise ConfigError("--reverse: nothing is sorted. Add --sort COLUMN.")
    trainings = [*dict.fromkeys(filter(None, map(training_folder, paths)))]
    others = [path for path in paths if training_folder(path) is None]
    if trainings and others:
        raise ConfigError(
            f"{others[0]}: a table next to trainings such as {trainings[0]}. Show them in two calls."
        )
    if trainings:
        studies = dict.fromkeys(study_of(history) for folder in trainings for history in histories_of(folder))
        return draw(trainings, to or _FIGURE, told_apart(studies, lambda study: study.name))
    if to:
        raise ConfigError(
            f"--to {to}: only learning curves are written to a file. Name trainings, or redirect the output."
        )
    tables = _tables(paths, by, timed=form != "csv")
    sheets = [table.sheet for table in tables]
    choice = Choice(_headings(columns, sheets), sort, reverse, top, notes)
    chosen = choice.of(tables)
    cells = [row for table in chosen for row in table.sheet.rows if row["seeds"] is not None]
    return Answer(parts=[PrintedTable("cells", cells, shown=()), *_printed(chosen, form, by, choice)])


def _tables(paths: Sequence[Path], by: selection.By | None, *, timed: bool) -> list[Shown]:
    """Return the tables in files, joined if ``by`` is given or several files are named.

    Raises:
        DataError: if a file is missing or not a table.
    """
    given = [tables_in(path) if path.is_dir() else [path] for path in paths]
    files = [*{relative_name(table): table for some in given for table in some}.values()]
    for path in files:
        check_table(path)
    tables = [Shown([path], _sheet(path, timed=timed)) for path in files]
    if len(tables) == 1 or not (by or all(path.is_file() for path in paths)):
        return tables
    labels = told_apart(
        files,
        _study,
        lambda path: path.stem,
        lambda path: f"{_study(path)}/{path.stem}",
        lambda path: relative_name(path.absolute().parents[1]),
    )
    labelled = {labels[path]: table.sheet for path, table in zip(files, tables, strict=True)}
    return [Shown(files, selection.join(labelled, by or "heading"))]


def _sheet(path: Path, *, timed: bool) -> Sheet:
    """Return the sheet of a table, whose cells also have the names of the study and the table."""
    sheet = sheet_of(path, measured_table(path) if timed else None)
    origin = {"study": _study(path), "table": path.stem}
    return replace(sheet, rows=[origin | row for row in sheet.rows])


def _study(table: Path) -> str:
    """Return the name of the study of a table, results/<study>/tables/<table>.parquet."""
    return table.absolute().parts[-3]


def _headings(texts: Iterable[str], sheets: Sequence[Sheet]) -> list[str]:
    """Return the headings in comma-separated texts; a heading may contain a comma."""
    known = {name for sheet in sheets for name in selection.column_names(sheet)}
    parts = (part for text in texts for part in ([text] if text in known else text.split(",")))
    return [part.strip() for part in parts if part.strip()]


def told_apart(paths: Iterable[Path], *texts: Callable[[Path], str]) -> dict[Path, str]:
    """Return a distinct text for each path: by the first function whose texts are distinct, else the whole path."""
    given = [*paths]
    named = ({path: text(path) for path in given} for text in (*texts, relative_name))
    return next(names for names in named if len({*names.values()}) == len({*given}))


def _printed(
    tables: Sequence[Shown], form: str | None, by: selection.By | None, choice: Choice
) -> Iterable[RenderableType]:
    """Return the texts of tables in a format, or for a terminal."""
    sheets, notes = [table.sheet for table in tables], choice.notes
    if form == "csv":
        return [to_csv(sheets).rstrip("\n")]
    if form == "markdown":
        return ["\n- ".join([_in_markdown(sheet), *(footnotes(sheet) if notes else ())]) for sheet in sheets]
    if form == "latex":
        options = [*(["--by", by] if by else []), *choice.words()]
        words = (shlex.join([*map(str, table.paths), *options]) for table in tables)
        calls = (f"python -m workflow_scripts show {given} --latex" for given in words)
        return [
            latex(sheet, call, selection.best(sheet), notes=notes)
            for sheet, call in zip(sheets, calls, strict=True)
        ]
    width = get_terminal_size((PIPE_WIDTH, 0)).columns
    return [f"{in_terminal(sheet, width, notes=notes)}\n" for sheet in sheets]


def _in_markdown(sheet: Sheet) -> str:
    """Return title, source and table."""
    return f"**{sheet.title}** ({sheet.source})\n\n{markdown(*in_rows(sheet, selection.best(sheet)))}\n"
