"""Lee and Pincombe's 50 news documents with the mean human rating of each of 1,225 pairs.

Lee, Pincombe and Welsh 2005, An empirical evaluation of models of text document similarity. Ratings range from 0.2
to 1; the matrix is symmetric, and its upper triangle is read.
"""

from itertools import combinations

import numpy as np

from workflow_scripts.columns import PAIRS
from workflow_scripts.data.readers import Files, Rows
from workflow_scripts.data.tables import table_of
from workflow_scripts.errors import DataError
from workflow_scripts.settings.readers import Lee as Config


def read(files: Files, _options: Config) -> Rows:
    """Read ``documents`` (Latin-1, one per line) and ``ratings`` (a matrix of numbers).

    Returns:
        Rows of the form ``pairs``.

    Raises:
        DataError: if the ratings are not a square matrix of numbers with a row for every document.
    """
    documents, file = files["documents"].read_text("latin-1").removesuffix("\n").split("\n"), files["ratings"]
    try:
        ratings = np.loadtxt(file, ndmin=2)
    except ValueError as error:
        raise DataError(f"{file}: not a matrix of ratings: {error}. Correct the file.") from error
    if ratings.shape != (len(documents), len(documents)) or not np.isfinite(ratings).all():
        problem = f"{' x '.join(map(str, ratings.shape))} ratings for {len(documents)} documents, or some not finite"
        raise DataError(f"{file}: {problem}. Correct either file.")
    pairs = combinations(range(len(documents)), 2)
    rows = [("", documents[i], documents[j], float(ratings[i, j])) for i, j in pairs]
    return Rows(table_of(rows, PAIRS))
