"""The ledger: what is written stays, is checked, is asked once, and can be mended and moved."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.verbs import data, printed
from workflow_scripts.apis.ledger import Ledger, Request, Row
from workflow_scripts.errors import ApiError, DataError
from workflow_scripts.provenance.closure import ROOT


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


def test_usable_answers_are_kept_and_failed_requests_claimed_again(tmp_path):
    with Ledger(tmp_path / "answers.sqlite") as ledger:
        first = [row(1, "first"), row(2, None, "failed"), row(3, "?", "rejected"), row(4, status="refused")]
        ledger.save(first)
        granted = ledger.claim([request(number) for number in range(1, 1202)], 60)
        assert granted.mine == [request(number) for number in (2, *range(5, 1202))]
        assert set(granted.known) == {request(number).key for number in (1, 3, 4)}
        ledger.save([row(number, "second") for number in range(1, 1202)])
        assert answers_in(ledger, range(1300)) == {"text 1": "first"} | {
            f"text {n}": "second" for n in range(2, 1202)
        }
        ledger.save([row(1, "first", "rejected")], overwrite_usable=True)
        assert ledger.find([request(1)])[request(1).key].status == "rejected"


CLAIMS = """
import sys
from pathlib import Path
from workflow_scripts.apis.ledger import Ledger, Request

Ledger(Path(sys.argv[1])).claim([Request("google", "", "en", "fr", "text 0")], 60)
print("claimed", flush=True)
input()
"""


def test_a_claimed_request_is_busy_until_its_process_ends(tmp_path):
    path = tmp_path / "answers.sqlite"
    process = subprocess.Popen(
        [sys.executable, "-c", CLAIMS, str(path)],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "claimed\n"
    with Ledger(path) as ledger:
        assert ledger.claim([request(0)], 60).busy == [request(0)]
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert ledger.claim([request(0)], 60).mine == [request(0)]  # at once, not when the claim lapses


def test_claims_end_with_the_answer_or_when_they_are_released(tmp_path):
    with Ledger(tmp_path / "answers.sqlite") as one, Ledger(tmp_path / "answers.sqlite") as two:
        one.claim([request(1), request(2)], 60)
        one.save([row(1, status="failed")])
        assert two.claim([request(1), request(2)], 60).busy == [request(2)]
        one.release()
        assert two.claim([request(2)], 60).mine == [request(2)]


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
        assert [spent[::2] for spent in two.spent()] == [("another", 1), ("google", 3)]
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
        with pytest.raises(DataError, match=r"damaged .*index|checksum"):
            ledger.find([request(999)])


# Commands


def test_rows_are_counted_and_shown_by_what_was_chosen(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMBLANCE_ANSWERS", str(tmp_path / "answers.sqlite"))
    failed = row(2, "Error 500", "failed", reason="error message")
    paid = Row(Request("openai", "m", "", "", "Write."), "Said.", "usable", cost_usd=0.5)
    with Ledger(tmp_path / "answers.sqlite") as ledger:
        ledger.save([row(1), failed, row(3, "", "rejected", reason="empty"), paid])
    said = " ".join(printed("answers", "stats")[1].replace("│", " ").split())
    assert "4 rows, 0.5000 USD where known" in said
    assert "google en to fr failed error message 1" in said and "openai m prompts usable 1" in said
    (shown,) = data("answers", "show", "--status", "failed")[1]["rows"]
    assert (
        shown.items()
        >= {"text": "text 2", "answer": "Error 500", "status": "failed", "engine": "google"}.items()
    )
    assert printed("answers", "show", "--most", 2)[1].splitlines()[-1] == "and more; --most 2"
