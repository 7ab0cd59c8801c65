"""The ledger: what is written stays, is checked, is asked once, and can be mended and moved."""

import random
import shutil
import sqlite3
import subprocess
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import docs
from workflow_scripts.apis.ledger import Ledger, Request, Row
from workflow_scripts.errors import ApiError, DataError


def request(number):
    return Request("google", "", "en", "fr", f"text {number}")


def row(number, answer=None, status="usable", **more):
    return Row(request(number), f"answer {number} " * 5 if answer is None else answer, status, **more)


def answers_in(ledger, numbers):
    found = ledger.find([request(number) for number in numbers])
    return {row.request.text: row.answer for row in found.values()}


def test_a_row_is_stored_in_plain_text_with_all_attributes(tmp_path):
    asked = Request("openai", "deepseek-chat", "", "", "Write.", '{"seed": 7}')
    kept = Row(asked, "Said.", "usable", cost_usd=0.25, attributes='{"endpoint": "http://one"}')
    with Ledger(tmp_path / "deep/answers.sqlite") as ledger:
        dated = ledger.save([kept, row(1, "", "rejected", reason="empty")])
    assert dated[0]._replace(asked_at="") == kept and dated[0].asked_at.endswith("Z")
    with Ledger(tmp_path / "deep/answers.sqlite") as ledger:
        found = ledger.find([asked, request(1), request(2)])
    assert found == {asked.key: dated[0], request(1).key: dated[1]}
    with sqlite3.connect(tmp_path / "deep/answers.sqlite") as database:
        stored = database.execute("SELECT text, answer FROM requests WHERE engine = 'openai'")
        assert stored.fetchall() == [("Write.", "Said.")]


@given(
    st.lists(st.text(max_size=4), min_size=6, max_size=6),
    st.lists(st.text(max_size=4), min_size=6, max_size=6),
)
@settings(max_examples=50)
def test_requests_have_one_key_if_and_only_if_they_are_equal(one, other):
    assert (Request(*one).key == Request(*other).key) == (one == other)


def test_many_rows_are_saved_at_once_and_a_later_one_takes_the_place_of_an_earlier_one(tmp_path):
    with Ledger(tmp_path / "answers.sqlite") as ledger:
        ledger.save([row(number, None, "failed") for number in range(1200)])
        ledger.save([row(number, "said") for number in range(1200)])
        assert answers_in(ledger, range(1300)) == {f"text {n}": "said" for n in range(1200)}


# Rates and budgets


def test_a_rate_is_one_for_all_processes(tmp_path, monkeypatch):
    monkeypatch.setattr("workflow_scripts.apis.ledger.time", SimpleNamespace(time=lambda: 1000.0))
    with Ledger(tmp_path / "answers.sqlite") as one, Ledger(tmp_path / "answers.sqlite") as two:
        waits = [ledger.turn("google", 10, None) for ledger in (one, two) * 3]
    assert waits == pytest.approx([0, 0.1, 0.2, 0.3, 0.4, 0.5])


def test_a_days_budget_is_one_for_all_processes_and_new_the_next_day(tmp_path, monkeypatch):
    with Ledger(tmp_path / "answers.sqlite") as one, Ledger(tmp_path / "answers.sqlite") as two:
        for ledger in (one, two, one):
            assert ledger.turn("google", None, 3) == 0
        with pytest.raises(ApiError, match=r"google: the 3 requests a day of per_day are sent"):
            two.turn("google", None, 3)
        assert two.turn("another", None, 3) == 0
        monkeypatch.setattr("workflow_scripts.apis.ledger.now", lambda: "2999-01-01T00:00:00Z")
        assert two.turn("google", None, 3) == 0


# Damage


ANSWERS = {f"text {number}": f"answer {number} " * 5 for number in range(300)}


@pytest.fixture
def filled(tmp_path):
    path = tmp_path / "answers.sqlite"
    with Ledger(path) as ledger:
        ledger.save([row(number) for number in range(300)])
    assert [file.name for file in tmp_path.iterdir()] == ["answers.sqlite"]  # nothing is left in a log
    return path


def flip(path, position, bit):
    content = bytearray(path.read_bytes())
    content[position] ^= 1 << bit
    path.write_bytes(content)


def test_no_flipped_bit_changes_or_loses_an_answer_unnoticed(filled):
    """At 150 places: each is noticed, or lies where nothing is kept, and every answer is as it was."""
    generator = random.Random(0)
    content = filled.read_bytes()
    noticed = 0
    for _round in range(150):
        flip(filled, generator.randrange(len(content)), generator.randrange(8))
        try:
            with Ledger(filled) as ledger:
                assert answers_in(ledger, range(300)) == ANSWERS
        except DataError as error:
            assert ".recover" in str(error)
            noticed += 1
        for left in filled.parent.iterdir():
            left.unlink()
        filled.write_bytes(content)
    assert noticed > 75


def test_the_whole_file_is_checked_before_an_answer_counts_as_missing(filled):
    """The first find is content; the other would pay for an answer that is there, under a damaged key."""
    flip(filled, filled.read_bytes().index(request(7).key), 0)
    with Ledger(filled) as ledger:
        assert answers_in(ledger, [8]) == {"text 8": "answer 8 " * 5}
        with pytest.raises(DataError, match=r"index|checksum"):
            ledger.find([request(999)])


# Commands


@pytest.mark.skipif(not shutil.which("sqlite3"), reason="no program sqlite3")
def test_the_documented_commands_sum_costs_list_answers_and_forget_them(tmp_path):
    commands = [
        line
        for step in docs.steps((docs.ROOT / "docs/provenance.md").read_text())
        for line in step.text.splitlines()
        if line.startswith("sqlite3")
    ]
    failed = row(2, "Error 500", "failed", reason="error message")
    paid = [Row(Request("openai", "m", "", "", text), "Said.", "usable", cost_usd=0.5) for text in ("a", "b")]
    with Ledger(tmp_path / "answers/answers.sqlite") as ledger:
        ledger.save([row(1), failed, row(3, "", "rejected", reason="empty"), *paid])
    summed, listed, _ = [
        subprocess.check_output(["bash", "-c", command], cwd=tmp_path, text=True) for command in commands
    ]
    assert "openai|m|||usable||2|1.0" in summed and "google||en|fr|failed|error message|1|" in summed
    assert "answer = Error 500" in listed and "text 3" in listed and "text 1" not in listed
    with Ledger(tmp_path / "answers/answers.sqlite") as ledger:
        assert answers_in(ledger, range(4)) == {"text 1": row(1).answer, "text 2": "Error 500"}
