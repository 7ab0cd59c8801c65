"""Print tables: all of a study, results/<study>, or the files that are named.

--csv has their numbers, rounded and without times; --markdown and --latex have a table's cells as they are printed,
with the paper's values; LaTeX needs booktabs. Texts in --csv are written as they are, for programs: a quote in front
of a title that begins with =, +, - or @ would change the title. Spreadsheets take such a cell for a formula, so import
the column as text.

  python -m workflow_scripts show results/demo/tables/demo.parquet --markdown
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote
from shutil import get_terminal_size

import pyarrow.parquet as pq
from rich.console import RenderableType

from workflow_scripts.columns import TABLE
from workflow_scripts.errors import DataError
from workflow_scripts.reporting.sheets import (
    footnotes,
    in_rows,
    in_terminal,
    latex,
    sheet_of,
    to_csv,
)
from workflow_scripts.verbs.printing import Answer, Rows, argument, markdown
from workflow_scripts.verbs.records import artefact_at, relative_name, study_folder

_PIPE_WIDTH = 240
_REMEDY = "Give a study, or files of its tables."


def measured_table(path: Path) -> Path | None:
    """The file with the measured columns of the table at results/<study>/tables/<name>.parquet; None without any."""
    study = path.absolute().parent.parent
    times = study.parent.parent / "benchmarks" / study.name / "tabulate_times" / path.name
    return times if times.exists() else None


def tables_in(folder: Path) -> list[Path]:
    """The tables of a study.

    Raises:
        DataError: if the folder has none.
    """
    if not (folder / "tables").is_dir():
        raise DataError(f"{folder}: a folder without tables. {_REMEDY}")
    return sorted(folder.glob("tables/*.parquet"))


def check_table(path: Path) -> None:
    """Check that a file is a table.

    Raises:
        DataError: if it is not, or is missing or damaged.
    """
    name, record = artefact_at(path)
    if name != Path(relative_name(path)) and path.suffix == ".parquet":
        raise DataError(f"{path}: data of a figure, not a table. Read it with pandas.read_parquet. {_REMEDY}")
    if name.suffix != ".parquet" or pq.read_schema(name).remove_metadata() != TABLE:
        raise DataError(f"{path}: made by {record.rule}, not a table. {_REMEDY}")


ARGUMENTS = (
    argument("paths", nargs="+", type=study_folder, metavar="PATH", help="results/<study>, or tables"),
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


def answer(paths: list[Path], form: str | None) -> Answer:
    """Every file, one below the other."""
    given = [tables_in(path) if path.is_dir() else [path] for path in paths]
    tables = [table for some in given for table in some]
    for path in tables:
        check_table(path)
    cells = [
        {"study": path.absolute().parts[-3], "table": path.stem} | row
        for path in tables
        for row in sheet_of(path, measured_table(path)).rows
    ]
    return Answer(parts=[Rows("cells", cells, shown=()), *_printed(tables, form)])


def _printed(tables: Sequence[Path], form: str | None) -> Iterable[RenderableType]:
    """Tables in a form, or for a terminal."""
    sheets = [sheet_of(path, measured_table(path)) for path in tables]
    if form == "csv":
        return [to_csv(map(sheet_of, tables)).rstrip("\n")]
    if form == "markdown":
        return ["\n- ".join([f"{markdown(*in_rows(one))}\n", *footnotes(one)]) for one in sheets]
    if form == "latex":
        calls = [f"python -m workflow_scripts show {quote(str(path))} --latex" for path in tables]
        return map(latex, sheets, calls)
    width = get_terminal_size((_PIPE_WIDTH, 0)).columns
    return [f"{in_terminal(one, width)}\n" for one in sheets]
