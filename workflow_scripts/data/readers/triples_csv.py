"""Triples as comma-separated values with quotes and a header, plain text or gzip.

The format of supervised SimCSE's file (sent0, sent1, hard_neg) and of datasets made after it.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from workflow_scripts.columns.corpora import TRIPLES
from workflow_scripts.data.readers.base import Rows
from workflow_scripts.errors import DataError
from workflow_scripts.settings.readers.triples_csv import Config


def read(files: Mapping[str, Path], options: Config) -> Rows:
    """Read the file of role ``triples``; rows with an empty text are dropped.

    Returns:
        Rows of the form ``triples``.

    Raises:
        DataError: if the file is damaged, is not UTF-8, or lacks a column.
    """
    path = files["triples"]
    columns = [options.anchor, options.positive, *([options.negative] if options.negative else [])]
    try:
        rows = csv.read_csv(
            path,
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.string()), include_columns=columns
            ),
        )
    except KeyError as error:
        raise DataError(f"{path}:1: {error.args[0].rstrip('.')}. Correct the block's options.") from error
    except (pa.ArrowInvalid, OSError) as error:
        first = str(error).splitlines()[0].rstrip(".")
        raise DataError(f"{path}: {first}. Download the file again.") from error
    said = [pc.greater(pc.utf8_length(pc.utf8_trim_whitespace(rows[name])), 0) for name in columns]
    whole = said[0]
    for column in said[1:]:
        whole = pc.and_(whole, column)
    kept = rows.filter(whole)
    texts = [kept[name] for name in columns]
    texts += [pa.nulls(len(kept), pa.string())] * (len(TRIPLES) - len(texts))
    empty = len(rows) - len(kept)
    return Rows(pa.table(texts, schema=TRIPLES), Counter({"empty text": empty} if empty else {}))
