from pathlib import Path

import gensim
import numpy as np
import pytest

from workflow_scripts.columns.corpora import PAIRS
from workflow_scripts.data.readers.lee import Config, read
from workflow_scripts.errors import DataError

PACKAGE = Path(gensim.__file__).parent / "test/test_data"


def test_the_published_ratings_are_1225_pairs_from_a_fifth_to_one():
    files = {"documents": PACKAGE / "lee.cor", "ratings": PACKAGE / "similarities0-1.txt"}
    table, dropped = read(files, Config())
    assert table.schema == PAIRS and len(table) == 50 * 49 // 2 == 1225 and not dropped
    scores, matrix = table["score"].to_numpy(), np.loadtxt(files["ratings"])
    assert (scores.min(), scores.max()) == (pytest.approx(0.2), pytest.approx(1.0))
    assert (scores[0], scores[-1]) == (matrix[0, 1], matrix[48, 49])
    assert table["sentence1"][0].as_py().startswith("The national executive")


def write(folder, documents, ratings):
    (folder / "documents").write_text("\n".join(documents) + "\n", "latin-1")
    (folder / "ratings").write_text("\n".join(" ".join(map(str, row)) for row in ratings) + "\n")
    return {"documents": folder / "documents", "ratings": folder / "ratings"}


def test_the_upper_triangle_is_read_row_by_row(tmp_path):
    """A line ends at a line feed alone: Latin-1 has U+0085, which some programs write for an ellipsis."""
    ratings = [[1, 0.2, 0.3], [9, 1, 0.4], [9, 9, 1]]
    table, _ = read(write(tmp_path, ["caf\xe9\x85 on", "b", "c"], ratings), Config())
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        ("", "caf\xe9\x85 on", "b", 0.2),
        ("", "caf\xe9\x85 on", "c", 0.3),
        ("", "b", "c", 0.4),
    ]


@pytest.mark.filterwarnings("ignore:loadtxt")
@pytest.mark.parametrize(
    ("documents", "ratings"),
    [
        (["a", "b", "c"], [[1, 0.5], [0.5, 1]]),
        (["a", "b"], [[1, 0.5]]),
        (["a", "b"], [["x", 0.5], [0.5, 1]]),
        (["a", "b"], [[1, 0.5], [0.5]]),
        (["a", "b"], [[1, "nan"], [0.5, 1]]),
        (["a", "b"], []),
    ],
)
def test_ratings_that_do_not_fit_the_documents_are_refused(tmp_path, documents, ratings):
    with pytest.raises(DataError, match="ratings"):
        read(write(tmp_path, documents, ratings), Config())
