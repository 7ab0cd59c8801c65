"""SentEval's form of sentences: by hand, and against its own files if they are installed."""

import os
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support import toys
from workflow_scripts.columns import PAIRS
from workflow_scripts.evaluation import sts
from workflow_scripts.evaluation.senteval_text import as_fed
from workflow_scripts.models.backbone import load_tokenizer
from workflow_scripts.settings.suites import RELEASED
from workflow_scripts.settings.suites import Sts as StsSuite

DATA = Path(os.environ.get("SEMBLANCE_DATA", "/nonexistent"), "sts")


@pytest.mark.parametrize(
    ("released", "fed"),
    [
        ("A girl is styling her hair.", "a girl is styling her hair ."),
        ("It's 1,650 (or 0.11 percent), isn't it?", "it ' s 1,650 ( or 0.11 percent ) , isn ' t it ?"),
        ("Mr. Burger of the U.S. said so, W. Bush no.", "mr. burger of the u.s. said so , w. bush no ."),
        ("Oct. 31 ... costs $2.50/day", "oct . 31 ... costs $ 2.50 / day"),
        ("'Million March' backs 'PBS'", "'million march ' backs ' pbs'"),
        ("a salient_entity, co-operative", "a salient _ entity , co-operative"),
    ],
)
def test_sentences_by_hand(released, fed):
    assert as_fed(released, lower=True) == fed
    assert as_fed(released, lower=False).lower() == fed


@pytest.mark.skipif(not DATA.exists(), reason="STS12 to STS15 are not below SEMBLANCE_DATA")
@pytest.mark.parametrize(("name", "others"), [("sts12", 3), ("sts13", 0), ("sts14", 1), ("sts15", 0)])
def test_sentences_are_those_of_sentevals_own_files(name, others):
    def sentences(file):
        rows = (DATA / file).read_text("utf-8").split("\n")[1:]
        return [text for row in rows if row for text in row.split("\t")[2:4]]

    released, fed = sentences(f"{name}.tsv"), sentences(f"{name}.senteval-tok.tsv")
    assert len(released) == len(fed) > 2900
    assert sum(as_fed(one, lower=True) != other for one, other in zip(released, fed, strict=True)) == others


def test_a_suite_takes_either_text_and_sick_keeps_its_case():
    table = pa.Table.from_pylist(
        [{"subset": None, "sentence1": "A Town.", "sentence2": "It's", "score": 1.0}], schema=PAIRS
    )
    sides = ("sentence1", "sentence2")

    def texts(task, text):
        return [sts.in_text(task, table, text)[side].to_pylist()[0] for side in sides]

    assert texts("sts12", "release") == ["A Town.", "It's"]
    assert texts("sts12", "senteval") == ["a town .", "it ' s"]
    assert texts("sick_r_test", "senteval") == ["A Town .", "It ' s"]
    assert sts.in_text("sts12", table, "senteval").schema == PAIRS


def test_released_text_is_labelled_where_a_tokeniser_sees_case(tiny_bert):
    uncased = load_tokenizer(tiny_bert)
    cased = toys.make_tokenizer("roberta")
    cased.backend_tokenizer.normalizer = None
    suites = {
        (names, text): StsSuite(datasets=list(names), max_tokens=8, text_version=text)
        for names in (("sts12", "lee"), ("lee", "sts17"))
        for text in ("release", "senteval")
    }
    scored = {"sts12", "lee", "sts17"}
    found = {key: suite.labels(scored, cased.tokenize) for key, suite in suites.items()}
    assert found.pop((("sts12", "lee"), "release")) == [RELEASED]
    assert set(map(tuple, found.values())) == {()}
    assert all(suite.labels(scored, uncased.tokenize) == [] for suite in suites.values())


def test_a_suite_without_scores_has_no_label(tiny_bert):
    """A suite without scores has no label and a gap none of its text."""
    cased = toys.make_tokenizer("roberta")
    cased.backend_tokenizer.normalizer = None
    suite = StsSuite(datasets=["sts12", "lee"], max_tokens=8, label="few tokens")
    assert suite.labels({"sts12", "lee"}, cased.tokenize) == ["few tokens", RELEASED]
    assert suite.labels({"lee"}, cased.tokenize) == ["few tokens"]
    assert suite.labels(set(), cased.tokenize) == []
