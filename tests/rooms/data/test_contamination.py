import os

import pyarrow as pa
import pytest

from tests.support.local_datasets import dataset
from workflow_scripts.columns import CONTAMINATION, LABELLED, PAIRS, SENTENCES
from workflow_scripts.data.contamination import contained, contamination, normalised

DATA = os.environ.get("SEMBLANCE_DATA")


def sentences(*texts):
    return pa.table(
        {"sentence": texts, "document": [0] * len(texts), "position": [0] * len(texts)}, SENTENCES
    )


def pairs(*texts):
    first, second = zip(*texts, strict=True)
    rows = {"subset": [""] * len(texts), "sentence1": first, "sentence2": second, "score": [1.0] * len(texts)}
    return pa.table(rows, PAIRS)


def labelled(*texts):
    return pa.Table.from_pylist(
        [{"split": "", "text1": text, "label": "1"} for text in texts], schema=LABELLED
    )


def row(table, match):
    return next(row for row in table.to_pylist() if row["match"] == match)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1 5.", "15", False), ("15.", "15", True), ("3.5 km", "35 km", False), ("1,000", "1 , 000", True),
        ("a 1 b", "a1b", True), ("do n't", "don't", True), ("2 - 1", "2-1", True), ("x, y", "xy", True),
        ("They don't.", "they do n't .", True),  # tokenised
        ("\ufb01ne print", "FINE PRINT", True),  # compatibility form
        ("Straße", "STRASSE", True),  # case folding, not lower case
        ("café", "cafe\u0301", True),  # composed or not
        ("$ 5 - now", "5 now", True),  # symbols
        ("a cat", "chat", False), ("a dog", "a dog 2", False),
        ("I \u2764\ufe0f it", "I \u2764 it", True), ("5\ufe0f\u20e3 dogs", "5 dogs", True),  # coloured emoji, keycap
        ("Hobbes\u00b4s cat", "Hobbes's cat", True), ("co\u00adoperate", "cooperate", True),
        ("काला", "कल", False),  # vowel signs
    ],
)  # fmt: skip
def test_forms_of_one_sentence_match_and_other_sentences_do_not(one, other, same):
    assert normalised(one)
    assert (normalised(one) == normalised(other)) == same


def test_a_text_within_another_is_contained():
    task = pairs(
        ("The old man walks home.", "the OLD man, walks home"), ("Man walks home late.", "An old man walks home."),
        ("The old man walks", "The old man walks home in the evening"),
    )  # fmt: skip
    corpus = sentences("Yesterday the old man walks home, alone.", "Old man")
    found = row(contamination([corpus], {"toy": task}, 9), "contained")
    assert found["examples"] == ["The old man walks home.", "the OLD man, walks home"]
    assert (found["texts"], found["shared_texts"], found["rows_with_all"]) == (6, 2, 1)


@pytest.mark.parametrize(
    ("text", "within", "beside"),
    [
        ("老人独自走回家", "昨天老人独自走回家了。", "昨天老人走回家了。"),
        ("老人は一人で家に帰った", "昨日、老人は一人で家に帰ったそうだ。", "昨日、老人は家に帰った。"),
        ("ชายชราเดินกลับบ้าน", "เมื่อวานชายชราเดินกลับบ้าน", "เมื่อวานชายชราเดินกลับวัด"),
        ("वह आज सुबह घर गया", "कल नहीं, वह आज सुबह घर गया था।", "कल नहीं, वह आज सुबह घर गयी थी।"),
        ("the x\u0304 is a mean", "Here the x\u0304 is a mean.", "Here the x is a mean."),
        ("we co\u00adoperate with all others", "Now we cooperate with all others.", "We operate with all others."),
    ],
)  # fmt: skip
def test_words_of_any_script_are_compared_whole(text, within, beside):
    assert contained([within], [text]) == {text}
    assert contained([beside], [text]) == set()


def test_vowel_signs_make_no_further_words():
    assert contained(["यह विश्वविद्यालय है।"], ["विश्वविद्यालय"]) == set()


def test_texts_and_rows_are_counted_for_both_kinds_of_match():
    task = pairs(("A dog runs.", "It rains."), ("A dog runs.", "No."), ("New", "Other"))
    found = contamination([sentences("A dog runs.", "it  RAINS")], {"toy": task}, examples=5)
    assert found.schema == CONTAMINATION
    counted = {"task": "toy", "texts": 5, "rows": 3, "rows_with_any": 2}
    assert row(found, "exact") == counted | {
        "match": "exact", "shared_texts": 1, "share": 0.2, "rows_with_all": 0, "examples": ["A dog runs."]
    }  # fmt: skip
    assert row(found, "normalised") == counted | {
        "match": "normalised", "shared_texts": 2, "share": 0.4, "rows_with_all": 1, "examples": ["A dog runs.", "It rains."]
    }  # fmt: skip


def test_blank_lines_match_nothing():
    blank = contamination([sentences("", "...", " ")], {"toy": labelled("", "...")}, examples=5)
    assert blank["shared_texts"].to_pylist() == blank["rows_with_all"].to_pylist() == [0, 0, 0]
    assert blank["texts"].to_pylist() == [2, 2, 2]


@pytest.mark.skipif(not DATA, reason="SEMBLANCE_DATA is not set: the overlap of real sets is not counted")
def test_sts_b_holds_sts12_and_sts17_in_either_form():
    """STS-B holds STS12 and STS17 in either form of their text."""
    sts = {name: dataset(name) for name in ("sts12", "sts12_senteval", "sts17")}
    stsb = {part: dataset(f"stsb_{part}") for part in ("train", "dev", "test")}
    train = contamination([stsb["train"]], sts, examples=1).to_pylist()
    both = {row["task"]: row["rows_with_all"] for row in train if row["match"] == "normalised"}
    assert both["sts12"] == both["sts12_senteval"] == 1030
    held_out = contamination([stsb["dev"], stsb["test"]], {"sts17": sts["sts17"]}, examples=1)
    assert row(held_out, "exact")["rows_with_all"] == 250
