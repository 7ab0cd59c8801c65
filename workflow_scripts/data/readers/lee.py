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
        DataError: if the matrix is not as long and as wide as there are documents.
    """
    documents = files["documents"].read_text("latin-1").splitlines()
    ratings = np.loadtxt(files["ratings"])
    if ratings.shape != (len(documents), len(documents)):
        raise DataError(f"{files['ratings']}: {ratings.shape} ratings for {len(documents)} documents.")
    rows = list(combinations(range(len(documents)), 2))
    columns = [
        [""] * len(rows),
        [documents[i] for i, _ in rows],
        [documents[j] for _, j in rows],
        [float(ratings[i, j]) for i, j in rows],
    ]
    return Reading(pa.table(columns, schema=PAIRS), Counter())
