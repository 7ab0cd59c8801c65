"""JSON lines and Parquet, read by the library ``datasets`` without a network; options map columns to the form."""

import glob
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from workflow_scripts.data.readers import Files, Rows
from workflow_scripts.data.tables import in_form
from workflow_scripts.errors import DataError
from workflow_scripts.settings.readers import PARTS
from workflow_scripts.settings.readers import Records as Config


def read(files: Files, options: Config) -> Rows:
    """Read the parts train, dev and test, or the one part ``all``, whose rows have no split.

    Returns:
        Rows of the form with the configured columns.

    Raises:
        DataError: naming a file of another format, a missing column, or a column of another type.
    """
    parts = []
    for part in [part for part in PARTS if part in files]:
        constants = {"split": "" if part == "all" else part, "subset": ""}
        table = _table(files[part], options.format)
        parts.append(in_form(table, str(options.form), options.columns, constants, str(files[part])))
    return Rows(pa.concat_tables(parts))


def _table(path: Path, form: str) -> pa.Table:
    import datasets  # slow to import, and needed only by these formats

    datasets.config.HF_UPDATE_DOWNLOAD_COUNTS = False  # no network request
    file = glob.escape(str(path.resolve()))
    with TemporaryDirectory() as cache:
        try:
            rows = datasets.load_dataset(
                form, data_files=file, split="train", cache_dir=cache, keep_in_memory=True
            )
        except (datasets.exceptions.DatasetGenerationError, ValueError) as error:
            reason = (str(error.__cause__ or error).splitlines() or [""])[0].rstrip(". ")
            raise DataError(
                f"{path}: not {form}: {reason}. Correct the file, or the option format."
            ) from error
        return rows.with_format("arrow")[:]
