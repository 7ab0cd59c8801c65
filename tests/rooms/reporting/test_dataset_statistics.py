"""Tables 2 and 3 of the extraction study (E-10), on sets small enough to count by hand."""

import pyarrow as pa
import pytest

from workflow_scripts.columns import LABELLED, PAIRS
from workflow_scripts.data.printed import Printed
from workflow_scripts.errors import ConfigError
from workflow_scripts.reporting.dataset_statistics import build, describe, end_ratio
from workflow_scripts.settings.extraction import DIGITS, Statistics


def halves(texts):
    """Pieces of a pretended encoder: what is longer than three letters is cut in two."""
    return [
        [piece for word in text.split() for piece in ([word[:3], f"##{word[3:]}"] if word[3:] else [word])]
        for text in texts
    ]


TEXTS = pa.Table.from_pylist(
    [
        {"split": split, "text1": text, "text2": None, "label": label}
        for split, text, label in (
            ("train", "a red town", "x"),
            ("train", "a town 7", "x"),
            ("train", "old town", "y"),
            ("test", "sea", "y"),
        )
    ],
    schema=LABELLED,
)
GONE = LABELLED.empty_table()
ROW = {"name": "Set", "split": "train", "dataset": "set", "graded": False, "words": "whitespace"}


def built(*rows, printed=()):
    """Cells of a table of statistics, by run and heading."""
    table = Statistics.parse({"title": "t", "source": "s", "rows": rows}, "statistics")
    cells = build(table, {"set": TEXTS, "gone": GONE}, halves, ["stands in"], dict(printed))
    return {(cell["run"], cell["heading"]): cell for cell in cells.to_pylist()}


def test_texts_with_classes_are_counted_by_hand():
    found = describe(TEXTS.slice(0, 3), False, "whitespace", halves)
    assert found == pytest.approx({
        "N": 3, "C": 2, "L/S": 2,
        "vocabulary W": 5, "tokens W": 8 / 3, "alphabetic W, %": 100 * 7 / 8,
        "vocabulary B": 6, "tokens B": 11 / 3, "alphabetic B, %": 100 * 7 / 11,
    })  # fmt: skip


def test_a_pair_is_one_text_and_marks_stand_apart():
    pairs = pa.Table.from_pylist(
        [
            {"subset": "", "sentence1": "A Town.", "sentence2": "a town", "score": 5.0},
            {"subset": "", "sentence1": "it's", "sentence2": "old", "score": 0.5},
        ],
        schema=PAIRS,
    )
    found = describe(pairs, True, "marks_apart", halves)
    assert (found["N"], found["vocabulary W"], found["tokens W"]) == (2, 7, 4.5)
    assert found["alphabetic W, %"] == pytest.approx(100 * 7 / 9)
    assert "C" not in found


@pytest.mark.parametrize(
    ("grades", "ratio"), [([5, 4.2, 4, 1, 0], 1.5), ([0, 1, 2, 3, 4, 5, 0.5], 2 / 3), ([0.1, 0.5, 1.0], 1.0)]
)
def test_ends_of_grades_are_one_point_wide(grades, ratio):
    assert end_ratio(pa.chunked_array([pa.array(grades, pa.float64())])) == pytest.approx(ratio)


def test_rows_take_their_split_and_printed_numbers():
    """Rows take their split, their printed numbers and say why they are empty."""
    gone = ROW | {"name": "Gone", "split": "", "dataset": "gone", "graded": True}
    printed = {
        (split, "Set", "N"): Printed("t", split, "Set", "N", value, "", "", "", "Table 3")
        for split, value in (("train", 4.0), ("test", 1.0))
    }
    found = built(ROW, gone, printed=printed)
    assert len(found) == 2 * len(DIGITS)
    assert all(found["Set, train", heading]["mean"] is not None for heading in DIGITS)
    assert (found["Set, train", "N"]["mean"], found["Set, train", "N"]["published"]) == (3, 4)
    assert found["Set, train", "vocabulary B"]["labels"] == ["stands in"]
    assert found["Set, train", "vocabulary W"]["labels"] == []
    assert found["Gone", "N"]["note"] == "no source of the dataset is available"
    assert found["Gone", "C"]["note"] == "grades, no classes"


def test_a_split_that_a_dataset_lacks_is_an_error_and_no_gap():
    with pytest.raises(
        ConfigError, match=r"Set: dataset set has no split tset\. Choose one of test, train\."
    ):
        built(ROW | {"split": "tset"})
