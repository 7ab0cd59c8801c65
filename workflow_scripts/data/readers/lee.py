"""Lee and Pincombe's 50 news documents with the mean human rating of each of 1,225 pairs.

Lee, Pincombe and Welsh 2005, An empirical evaluation of models of text document similarity. Ratings range from 0.2
to 1; the matrix is symmetric, and its upper triangle is read.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import numpy as np

from workflow_scripts.columns.corpora import PAIRS
from workflow_scripts.data.readers.base import Rows
from workflow_scripts.data.tables import table_of
from workflow_scripts.errors import DataError
from workflow_scripts.settings.readers.lee import Config


def read(files: Mapping[str, Path], _options: Config) -> Rows:
    """Read ``documents`` (Latin-1, one per line) and ``ratings`` (a matrix of numbers).

    Returns:
        Rows of the form ``pairs``.

    Raises:
        DataError: if the ratings are not a square matrix of numbers with a row for every document.
    """
    documents = files["documents"].read_text("latin-1").removesuffix("\n").split("\n")
    try:
        ratings = np.loadtxt(files["ratings"], ndmin=2)
    except ValueError as error:
        raise DataError(
            f"{files['ratings']}: not a matrix of ratings: {error}. Download the file again."
        ) from error
    if ratings.shape != (len(documents), len(documents)):
        found = f"{' x '.join(map(str, ratings.shape))} ratings for {len(documents)} documents"
        raise DataError(f"{files['ratings']}: {found}. Download both files again.")
    if not np.isfinite(ratings).all():
        raise DataError(f"{files['ratings']}: some ratings are not finite. Download the file again.")
    pairs = combinations(range(len(documents)), 2)
    rows = [("", documents[i], documents[j], float(ratings[i, j])) for i, j in pairs]
    return Rows(table_of(rows, PAIRS), Counter())
