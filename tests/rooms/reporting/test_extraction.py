"""Tables and figures of the extraction study, made of scores that are known."""

import pyarrow as pa
import pytest

from tests.support.toy_extraction import NAMES, TASKS, VARIANTS, row, rows
from workflow_scripts.columns import EXTRACTION
from workflow_scripts.data.printed import Printed
from workflow_scripts.reporting.extraction import Scores, Variant, build, shown
from workflow_scripts.reporting.sheets import Sheet
from workflow_scripts.settings.extraction import ExtractionTable


@pytest.fixture
def scores():
    return Scores([pa.Table.from_pylist(list(rows()), schema=EXTRACTION)], NAMES.measures.values())


def table(**changes):
    return ExtractionTable.model_validate(
        {
            "title": "A table", "source": "a test", "columns": "models", "models": ["BERT", "RE", "B2S"],
            "measures": ["STS"], "variants": VARIANTS, "digits": 1,
        } | changes
    )  # fmt: skip


def number(value, source="Table 4"):
    return Printed("t", "", "", "", value, "", "", "", source)


PRINTED = {("STS", "avg.", "BERT"): number(61.3), ("", "idf^T + zscore", "BERT"): number(70.0)}


def made(table, names, scores, printed=None, of_tasks=None, **labels):
    scores.labels.update(labels)
    return build(table, names, scores, printed or {}, of_tasks or {})


FEWER = NAMES.model_copy(
    update={"measures": NAMES.measures | {"STS": NAMES.measures["STS"].model_copy(update={"paper_tasks": 8})}}
)
OF_TASKS = {
    "sts12": {("", "avg.", "BERT"): number(40.0, "Table 6")},
    "sts13": {("", "avg.", "BERT"): number(50.0, "Table 7"), ("", "idf^T", "BERT"): number(60.0, "Table 7")},
}
TURNED = {
    "columns": "measures", "measures": ["STS", "STS12"], "models": ["BERT", "RE"],
    "variants": [{"weightings": ["avg"], "postprocessings": ["none"]}],
}  # fmt: skip
BY_HAND = {
    "a mean over two tasks": (
        {}, NAMES, ("avg.", "BERT"), {"mean": 60, "n": 20, "of_tasks": [50, 70], "published": 61.3, "seeds": 1},
    ),
    "of another variant": ({}, NAMES, ("idf^T + zscore", "BERT"), {"mean": 75, "published": 70.0}),
    "a deviation over draws": (
        {}, NAMES, ("avg.", "RE"), {"mean": 31, "sd": 2**0.5, "values": [30, 32], "published": None},
    ),
    "what is not there says why": (
        {}, NAMES, ("avg.", "B2S"), {"mean": None, "note": "sts12: no source; sts13: no source"},
    ),
    "fewer tasks than the paper's: with its mean of the same ones": ({}, FEWER, ("avg.", "BERT"), {"published": 45}),
    "one of whose tasks has no number": ({}, FEWER, ("idf^T", "BERT"), {"published": None}),
    "none of which has": ({}, FEWER, ("idf^T + zscore", "BERT"), {"published": None}),
    "models as rows, measures as columns": (TURNED, NAMES, ("BERT", "STS12"), {"mean": 50, "published": 48}),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "names", "place", "expected"), BY_HAND.values(), ids=BY_HAND)
def test_a_cell_is_as_worked_out_by_hand(scores, changes, names, place, expected):
    printed = PRINTED | {("", "BERT", "STS12"): number(48.0)}
    built = made(table(**changes), names, scores, printed, OF_TASKS, plain={"a stand-in"})
    (found,) = (one for one in built.to_pylist() if (one["run"], one["heading"]) == place)
    for name, value in expected.items():
        text = value is None or isinstance(value, str)
        assert found[name] == (value if text else pytest.approx(value)), name
    assert found["labels"] == (["a stand-in"] if "BERT" in place else [])


@pytest.mark.parametrize(
    ("draws", "postprocess", "measure", "notes"),
    [
        ((0, 0), "whiten", "STS", ("not in the study's grid",)),
        ((0, 1), "none", "STS", ("no draw has all of its tasks",)),
        ((0, 0), "none", "STS12", ("of sts12",)),  # the note of a score, where it is that of one task
        ((0, 0), "none", "STS", ("2 of 2 tasks have notes, such as sts12: of sts12",)),
    ],
)
def test_a_cell_has_notes_on_what_it_lacks(draws, postprocess, measure, notes):
    drawn = [
        row("random", task, 0.5, draw=draw, layers="static", note=f"of {task}")
        for draw, task in zip(draws, TASKS, strict=True)
    ]
    scores = Scores([pa.Table.from_pylist(drawn, schema=EXTRACTION)], NAMES.measures.values())
    found = scores.cell(NAMES.models["RE"], Variant("avg", postprocess), NAMES.measures[measure])
    assert found.notes == notes


@pytest.mark.parametrize(
    ("notes", "expected"),
    [
        ((None, None), ()),
        (("one", "one"), ("one",)),
        ((None, "one"), ("1 of 2 tasks have notes, such as sts13: one",)),
    ],
)
def test_a_mean_over_tasks_keeps_their_notes(notes, expected):
    rows = [
        row("random", task, 0.5, layers="static", note=note) for task, note in zip(TASKS, notes, strict=True)
    ]
    scores = Scores([pa.Table.from_pylist(rows, schema=EXTRACTION)], NAMES.measures.values())
    assert scores.cell(NAMES.models["RE"], Variant("avg", "none"), NAMES.measures["STS"]).notes == expected


def test_columns_are_named_by_their_encoder(scores):
    """Columns are named by their encoder and a substitution marks its columns."""
    models = NAMES.models | {"BERT": NAMES.models["BERT"].model_copy(update={"name": "{encoder} + x"})}
    names = NAMES.model_copy(update={"models": models})
    asked = table(models=["BERT", "RE"])
    built = made(asked, names, scores, plain={"a stand-in"}, random=set())
    sheet = Sheet("t", "A table", "a test", 0.05, "", built.to_pylist(), ["BERT", "RE"], shown(asked, names))
    assert [sheet.named(head["name"]) for head in sheet.columns] == ["MiniLM + x", "RE"]
    assert [head["marks"] for head in sheet.columns] == [["a"], []]
    assert not any(line["marks"] for line in sheet.run_rows)
    rows_are_models = table(columns="measures", models=["BERT", "RE"])
    assert "MiniLM + x" in {words.split(": ")[-1] for words in shown(rows_are_models, names).values()}
