"""Lee and Pincombe's 50 news documents with the mean of people's ratings for each of 1,225 pairs.

Lee, Pincombe and Welsh 2005, An empirical evaluation of models of text document similarity. Ratings
run from 0.2 to 1; the matrix is symmetric, its upper triangle is read.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa

from workflow_scripts.data.readers import Reading
from workflow_scripts.errors import DataError
from workflow_scripts.schemas import PAIRS


def read(files: Mapping[str, Path]) -> Reading:
    """Read ``documents`` (Latin-1, one a line) and ``ratings`` (a matrix of numbers).

    Raises:
        DataError: if the ratings are no matrix of numbers as long and as wide as there are documents.
    """
    documents = files["documents"].read_text("latin-1").removesuffix("\n").split("\n")
    try:
        ratings = np.loadtxt(files["ratings"], ndmin=2)
    except ValueError as error:
        raise DataError(f"{files['ratings']}: no matrix of ratings: {error}. Get the file again.") from error
    if ratings.shape != (len(documents), len(documents)):
        raise DataError(f"{files['ratings']}: {ratings.shape} ratings for {len(documents)} documents.")
    if not np.isfinite(ratings).all():
        raise DataError(f"{files['ratings']}: some ratings are no finite numbers. Get the file again.")
    rows = list(combinations(range(len(documents)), 2))
    columns = [
        [""] * len(rows),
        [documents[i] for i, _ in rows],
        [documents[j] for _, j in rows],
        [float(ratings[i, j]) for i, j in rows],
    ]
    return Reading(pa.table(columns, schema=PAIRS), Counter())
