"""The ledger: what is written stays, is checked, is asked once, and can be mended and moved."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.verbs import data, printed
from workflow_scripts.apis.ledger import Ledger, Request, Row
from workflow_scripts.errors import ApiError, DataError
from workflow_scripts.provenance.closure import ROOT

WRITER = """
import sys
from pathlib import Path
from workflow_scripts.apis.ledger import Ledger, Request, Row

ledger, name, count = Ledger(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3])
for number in range(count):
    request = Request("google", "", "en", "fr", f"text {number}")
    granted = ledger.claim([request], 60)
    if granted.mine:
        ledger.settle([Row(request, f"{name} {number}", "usable")])
    print(number, flush=True)
"""


def request(number):
    return Request("google", "", "en", "fr", f"text {number}")


def row(number, answer=None, status="usable", **more):
    return Row(request(number), f"answer {number} " * 5 if answer is None else answer, status, **more)


def answers_in(ledger, numbers):
    found = ledger.find([request(number) for number in numbers])
    return {row.request.text: row.answer for row in found.values()}


def writer(path, name, count):
    command = [sys.executable, "-c", WRITER, str(path), name, str(count)]
    return subprocess.Popen(
        command, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True
    )


def test_a_row_is_found_again_in_clear_with_all_that_was_noted(tmp_path):
    asked = Request("openai", "deepseek-chat", "", "", "Write.", '{"seed": 7}')
    kept = Row(asked, "Said.", "usable", cost_usd=0.25, attributes='{"endpoint": "http://one"}')
    with Ledger(tmp_path / "deep/answers.sqlite") as ledger:
        (dated,) = ledger.settle([kept])
        ledger.settle([row(1, "", "rejected", reason="empty")])
    assert [file.name for file in (tmp_path / "deep").iterdir()] == ["answers.sqlite"]
    with Ledger(tmp_path / "deep/answers.sqlite") as ledger:
        found = ledger.find([asked, request(1), request(2)])
    assert found[asked.key] == dated
    assert dated._replace(asked_at="") == kept
    assert time.strftime("%Y-", time.gmtime()) == dated.asked_at[:5]
    assert found[request(1).key].reason == "empty"
    assert len(found) == 2
    with sqlite3.connect(tmp_path / "deep/answers.sqlite") as database:
        assert database.execute("SELECT text, answer FROM requests WHERE engine = 'openai'").fetchall() == [
            ("Write.", "Said.")
        ]


def test_many_rows_are_found_at_once(tmp_path):
    with Ledger(tmp_path / "answers.sqlite") as ledger:
        ledger.settle([row(number) for number in range(1201)])
        found = answers_in(ledger, range(1300))
        assert found == {f"text {n}": f"answer {n} " * 5 for n in range(1201)}
        assert ledger.find([]) == {}


@given(
    st.lists(st.text(max_size=4), min_size=6, max_size=6),
    st.lists(st.text(max_size=4), min_size=6, max_size=6),
)
@settings(max_examples=50)
def test_requests_have_one_key_if_and_only_if_they_are_equal(one, other):
    assert (Request(*one).key == Request(*other).key) == (one == other)


def test_a_usable_answer_is_never_overwritten_and_others_are(tmp_path):
    with Ledger(tmp_path / "answers.sqlite") as ledger:
        ledger.settle([row(1, "first"), row(2, None, "failed", reason="busy"), row(3, "?", "rejected")])
        ledger.settle([row(number, "second") for number in (1, 2, 3)])
        assert answers_in(ledger, (1, 2, 3)) == {"text 1": "first", "text 2": "second", "text 3": "second"}


def test_a_failed_request_may_be_claimed_again_and_a_settled_one_not(tmp_path):
    with Ledger(tmp_path / "answers.sqlite") as ledger:
        ledger.settle([row(1), row(2, status="failed"), row(3, status="rejected"), row(4, status="refused")])
        granted = ledger.claim([request(number) for number in range(1, 6)], 60)
        assert granted.mine == [request(2), request(5)]
        assert set(granted.known) == {request(number).key for number in (1, 3, 4)}


def test_what_another_process_has_claimed_is_busy_until_it_ends(tmp_path):
    path = tmp_path / "answers.sqlite"
    claiming = (
        WRITER.split("granted")[0] + "ledger.claim([request], 60); print('claimed', flush=True); input()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", claiming, str(path), "x", "1"],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "claimed\n"
    with Ledger(path) as ledger:
        assert ledger.claim([request(0)], 60).busy == [request(0)]
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert ledger.claim([request(0)], 60).mine == [request(0)]  # at once, not when the claim lapses


def test_a_claim_of_another_machine_lapses(tmp_path, monkeypatch):
    clock = SimpleNamespace(time=lambda: 1000.0)
    monkeypatch.setattr("workflow_scripts.apis.ledger.time", clock)
    with Ledger(tmp_path / "answers.sqlite") as here:
        with monkeypatch.context() as patch:
            patch.setattr("socket.gethostname", lambda: "node17")
            there = Ledger(tmp_path / "answers.sqlite")
            there.claim([request(1)], 10)
        clock.time = lambda: 1009.0
        assert here.claim([request(1)], 60).busy == [request(1)]
        clock.time = lambda: 1011.0
        assert here.claim([request(1)], 60).mine == [request(1)]
        there.__exit__()


def test_claims_end_with_the_answer_or_when_they_are_released(tmp_path):
    with Ledger(tmp_path / "answers.sqlite") as one, Ledger(tmp_path / "answers.sqlite") as two:
        one.claim([request(1), request(2)], 60)
        one.settle([row(1, status="failed")])
        assert two.claim([request(1), request(2)], 60).busy == [request(2)]
        one.release()
        assert two.claim([request(2)], 60).mine == [request(2)]


def test_two_processes_at_once_settle_every_request_once(tmp_path):
    path = tmp_path / "answers.sqlite"
    processes = [writer(path, name, 300) for name in ("one", "two")]
    assert [process.wait() for process in processes] == [0, 0]
    with Ledger(path) as ledger:
        assert len(ledger) == 300
        assert {
            text.split()[1]: answer.split()[1] for text, answer in answers_in(ledger, range(300)).items()
        } == {str(number): str(number) for number in range(300)}


def test_what_was_settled_survives_ten_kills_at_random_and_nothing_else_is_left(tmp_path):
    path, draw = tmp_path / "answers.sqlite", random.Random(3)
    for _round in range(10):
        process = writer(path, "killed", 100_000)
        settled = [int(process.stdout.readline()) for _ in range(10)]
        time.sleep(draw.random() / 5)
        process.send_signal(signal.SIGKILL)
        settled += [int(line) for line in process.stdout.read().split()[:-1]]
        process.wait()
        with Ledger(path) as ledger:
            assert ledger.check() >= max(settled)
            assert len(answers_in(ledger, range(max(settled) + 1))) == max(settled) + 1
            ledger.settle(
                [row(f"of round {_round}")]
            )  # which clears away a journal in which nothing was written yet
    assert [file.name for file in tmp_path.iterdir()] == ["answers.sqlite"]


def test_a_file_that_is_no_ledger_ends_in_one_line(tmp_path):
    (tmp_path / "answers.sqlite").write_text("not a database, but long enough to look like one" * 20)
    with pytest.raises(DataError, match=r"answers\.sqlite: damaged \(file is not a database\)"):
        Ledger(tmp_path / "answers.sqlite")
    with sqlite3.connect(tmp_path / "other.sqlite") as database:
        database.execute("CREATE TABLE birds (name TEXT)")
    with pytest.raises(DataError, match="its tables are not those of a ledger"):
        Ledger(tmp_path / "other.sqlite")


def test_a_copy_taken_between_two_answers_has_all_of_them(tmp_path):
    with Ledger(tmp_path / "answers.sqlite") as ledger:
        for number in range(20):
            ledger.settle([row(number)])
            shutil.copy(tmp_path / "answers.sqlite", tmp_path / "copy.sqlite")  # while the ledger is open
            with Ledger(tmp_path / "copy.sqlite", read_only=True) as copy:
                assert len(answers_in(copy, range(20))) == copy.check() == number + 1


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
        ledger.settle([row(number) for number in range(300)])
    assert [file.name for file in tmp_path.iterdir()] == ["answers.sqlite"]  # nothing is left in a log
    return path


def flip(path, position, bit):
    content = bytearray(path.read_bytes())
    content[position] ^= 1 << bit
    path.write_bytes(content)


def test_no_flipped_bit_changes_or_loses_an_answer_unseen(filled):
    """At 400 places: each is noticed, or lies where nothing is kept, and every answer is as it was."""
    generator = random.Random(0)
    content = filled.read_bytes()
    noticed = 0
    for _round in range(400):
        flip(filled, generator.randrange(len(content)), generator.randrange(8))
        try:
            with Ledger(filled) as ledger:
                assert answers_in(ledger, range(300)) == ANSWERS
        except DataError as error:
            assert "workflow_scripts answers" in str(error)
            noticed += 1
        for left in filled.parent.iterdir():
            left.unlink()
        filled.write_bytes(content)
    assert noticed > 200


def test_a_damaged_answer_is_not_used(filled):
    position = filled.read_bytes().index(b"answer 7 ")
    flip(filled, position, 0)
    with Ledger(filled) as ledger, pytest.raises(DataError, match="a row has a wrong checksum"):
        ledger.find([request(7)])


def test_an_answer_is_not_called_missing_before_the_whole_file_was_read(filled):
    """The first find is content; the other would pay for an answer that is there, under a damaged key."""
    flip(filled, filled.read_bytes().index(request(7).key), 0)
    with Ledger(filled) as ledger:
        assert answers_in(ledger, [8]) == {"text 8": "answer 8 " * 5}
        with pytest.raises(DataError, match=r"damaged .*index|checksum"):
            ledger.find([request(999)])


def command(path, *arguments):
    return printed("answers", *arguments, "--ledger", path)[1]


def test_what_is_whole_in_a_damaged_ledger_can_be_saved(filled, tmp_path):
    flip(filled, filled.read_bytes().index(b"answer 7 "), 0)
    with pytest.raises(DataError, match="wrong checksum"):
        command(filled, "verify")
    saved = tmp_path / "answers.sqlite.saved"
    assert "299 whole rows" in command(saved, "merge", filled)
    with Ledger(saved) as ledger:
        assert ledger.check() == 299
        assert answers_in(ledger, range(300)) == {t: a for t, a in ANSWERS.items() if t != "text 7"}


def test_what_lies_on_both_sides_of_a_damaged_page_can_be_saved(filled, tmp_path):
    content = bytearray(filled.read_bytes())
    place = content.index(b"answer 150 ") // 4096 * 4096
    content[place : place + 4096] = bytes(4096)
    filled.write_bytes(content)
    command(tmp_path / "saved", "merge", filled)
    with Ledger(tmp_path / "saved") as ledger:
        assert 200 < ledger.check() < 300


def test_a_file_of_which_nothing_can_be_saved_is_one_line_and_stays(tmp_path):
    for content in (None, "garbage"):
        if content:
            (tmp_path / "other").write_text(content)
        with pytest.raises(
            DataError, match="no such file" if content is None else "no whole row .*Nothing was done"
        ):
            command(tmp_path / "answers.sqlite", "merge", tmp_path / "other")
    assert (tmp_path / "other").read_text() == "garbage"
    assert not (tmp_path / "answers.sqlite").exists()


@pytest.mark.parametrize("arguments", [("stats",), ("merge", "other")])
def test_a_folder_is_no_ledger(tmp_path, monkeypatch, arguments):
    (tmp_path / "other").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r": no such file\. Name one"):
        command(tmp_path, *arguments)


def test_a_full_disk_is_not_called_damage_and_loses_nothing(filled):
    with Ledger(filled) as ledger:
        (pages,) = ledger._database.execute("PRAGMA page_count").fetchone()
        ledger._database.execute(f"PRAGMA max_page_count={pages}")
        with pytest.raises(
            DataError, match=r"database or disk is full\. Nothing in it is damaged: check free space"
        ):
            ledger.settle([row(1000, "x" * 100_000)])
        assert answers_in(ledger, range(300)) == ANSWERS
        ledger._database.execute("PRAGMA max_page_count=100000")
        ledger.settle([row(1000, "x" * 100_000)])
    assert "Move the file away" not in (ROOT / "workflow_scripts/apis/ledger.py").read_text()


def test_a_locked_ledger_is_not_called_damage(filled, monkeypatch):
    monkeypatch.setattr("workflow_scripts.apis.ledger._BUSY_SECONDS", 0.2)
    with sqlite3.connect(filled) as other, Ledger(filled) as ledger:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(DataError, match=r"database is locked\. Nothing in it is damaged"):
            ledger.find([request(1)])


# Commands


@pytest.fixture
def mixed(tmp_path):
    with Ledger(tmp_path / "answers.sqlite") as ledger:
        ledger.settle(
            [
                row(1),
                row(2, "Error 500", "failed", reason="error message"),
                row(3, "", "rejected", reason="empty"),
            ]
        )
        ledger.settle([Row(Request("openai", "m", "", "", "Write."), "Said.", "usable", cost_usd=0.5)])
    return tmp_path / "answers.sqlite"


def test_stats_count_by_engine_status_and_reason(mixed):
    said = command(mixed, "stats")
    assert "4 rows, 0.5000 USD where known" in said
    for words in (
        "google en to fr failed error message 1",
        "google en to fr rejected empty 1",
        "openai m prompts usable 1",
    ):
        assert words in " ".join(said.replace("│", " ").split())


def test_show_prints_what_was_asked_and_said(mixed):
    (shown,) = data("answers", "show", "--matching", "Error 5..", "--ledger", mixed)[1]["rows"]
    assert (shown["text"], shown["answer"], shown["status"], shown["engine"]) == (
        "text 2",
        "Error 500",
        "failed",
        "google",
    )
    assert command(mixed, "show", "--most", 2).splitlines()[-1] == "and more; --most 2"


@pytest.mark.parametrize(
    ("choice", "left"),
    [
        (["--reason", "empty"], 3), (["--engine", "openai"], 3), (["--status", "usable"], 2), (["--matching", "^text"], 1),
        (["--status", "usable", "--engine", "google"], 3), (["--reason", "nothing"], 4),
    ],
)  # fmt: skip
def test_forget_takes_out_what_was_chosen(mixed, choice, left):
    command(mixed, "forget", *choice)
    with Ledger(mixed) as ledger:
        assert ledger.check() == left


def test_forget_needs_to_know_what(mixed):
    with pytest.raises(DataError, match="forget what"):
        command(mixed, "forget")
    with Ledger(mixed) as ledger:
        assert len(ledger) == 4


def test_merging_takes_the_usable_row_of_two_and_keeps_what_was_there(mixed, tmp_path):
    with Ledger(tmp_path / "other") as other:
        other.settle([row(1, "another"), row(2, "better"), row(3, "?", "rejected", reason="other"), row(4)])
    command(mixed, "merge", tmp_path / "other")
    with Ledger(mixed) as ledger:
        found = {r.request.text: (r.answer, r.reason) for r in ledger.rows()}
    assert found["text 1"] == ("answer 1 " * 5, "")
    assert found["text 2"] == ("better", "")
    assert found["text 3"] == ("", "empty")
    assert len(found) == 5
